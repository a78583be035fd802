"""The watcher, `devbench watch`: it reports runs that failed before they could report themselves.

A pod that gets no node, no image or no container never runs devbench. A pod that is killed for memory, evicted or past
its deadline cannot report its end. The API server knows all of this. `api` reads Jobs, pods and events of one
namespace, `pod_status` turns them into states of runs, `workers` does so for runs of several workers, and `loop` sends
the states to the hub. `overdue` finds Jobs of a CronJob that get no node, and `loop` ends them. `wait` waits for
results, for `devbench await`.

The watcher uses urllib3, which the client of the hub needs anyway. Kubernetes' own client would add twelve packages and
a thousand models to every image.
"""
