"""The watcher, `devbench watch`: it tells the hub of a cluster's runs what their pods can't tell it themselves.

A pod that gets no node, no image or no container never runs a line of devbench; one that is killed for memory, evicted
or past its deadline can't say so. The API server knows all of that: `api` reads it (jobs, pods and events of one
namespace, nothing else), `words` turns it into states of runs, `loop` keeps the hub informed.

It speaks to the API server by urllib3, which sending to a hub needs anyway: three lists and three watches take a
hundred lines, where the official client would bring twelve packages and a thousand models into every image.
"""
