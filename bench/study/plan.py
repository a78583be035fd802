"""The plan of a run: from settings to groups of specs, or an error that says why something cannot run.

Invalid requests are found here, before anything is measured: names, parameters, loops, data, and the backends' devices.
The specs of one workload form a group. Their workers are interleaved.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from bench import backends, datasets, registry
from bench.config.settings import RunSettings, value_of
from bench.errors import DeviceAbsent, NotApplicable, SettingsError, UnknownName, UsageError
from bench.machine import python_env
from bench.machine.limits import thread_count
from bench.model.plan import Group, Planned
from bench.model.spec import LOOPS, ROLES, Data, Env, Execution, Loop, Script, Spec, Threads
from bench.registry.notebook import is_notebook
from bench.session import worker_packages


def plan(workloads: Sequence[str | Path], settings: RunSettings, swept: Collection[str] = ()) -> list[Group]:
    """Return the groups that will run, after checking that their devices are available.

    Args:
        workloads: Names, or paths of files.
        settings: All settings.
        swept: Parameters that have other values in other plans. A case that sets one of them is left out.

    Raises:
        UsageError: A name, parameter, loop or data set is wrong. Nothing was measured.
        DeviceAbsent: A backend's device is absent.
    """
    planned_groups = groups(workloads, settings, swept)
    require_devices(settings)
    return planned_groups


def groups(workloads: Sequence[str | Path], settings: RunSettings, swept: Collection[str] = ()) -> list[Group]:
    """Return the groups as `plan` does, without checking their devices."""
    if not workloads:
        raise UnknownName("workload", "", registry.names(), "Name at least one.")
    _require_text([*map(str, workloads), *(settings.args or ()), str(settings.workdir or "")])
    for loop in settings.loop:
        if loop not in LOOPS:
            raise UnknownName("loop", loop, LOOPS)
    for name in settings.backend:
        backends.load(name)
    variants = variants_of(settings)
    swept = [*swept, *settings.vary]
    planned_groups = [_group(str(workload), variants, swept) for workload in workloads]
    return [_merged(planned_groups)] if settings.compare else planned_groups


def _require_text(words: Sequence[str]) -> None:
    """Check that names of files, arguments and the current folder are text, because specs and results are JSON.

    Raises:
        UsageError: One contains bytes that are not UTF-8, or the current folder was deleted.
    """
    try:
        here = str(Path.cwd())
    except OSError as error:
        raise UsageError(f"the current folder cannot be read: {error.strerror}", "Change to another folder.") from None
    for word in (*words, here):
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode(errors="backslashreplace").decode()
            raise UsageError(f"{shown} contains bytes that are not UTF-8", "Rename it.") from None


def require_devices(settings: RunSettings) -> None:
    """Check that the device of each backend is available.

    Raises:
        DeviceAbsent: A device is absent. The hint says how to make it available.
    """
    if settings.env:
        return  # each environment has a TensorFlow of its own, so its workers look for the device
    for name in settings.backend:
        backends.load(name).require()


def without_device(planned: Sequence[Group], settings: RunSettings) -> list[Group]:
    """Return the groups with only the specs of the first backend whose device is absent."""
    for name in settings.backend:
        try:
            backends.load(name).require()
        except DeviceAbsent:
            return [
                replace(group, planned=tuple(p for p in group.planned if p.spec.backend == name)) for group in planned
            ]
    return []


def _merged(groups: Sequence[Group]) -> Group:
    """Return all specs as one group.

    Raises:
        SettingsError: They are different built-ins, or all specs are the same.
    """
    planned = _told_apart([planned for group in groups for planned in group.planned])
    if len({p.spec.key for p in planned}) < 2:
        raise SettingsError("--compare needs at least two different specs", "Name two files, backends, loops or cases.")
    built_in = {p.spec.workload for p in planned if p.spec.file is None}
    if len(built_in) > 1 or (built_in and any(p.spec.file for p in planned)):
        names = " and ".join(dict.fromkeys(p.spec.workload for p in planned))
        raise SettingsError(
            f"--compare cannot compare {names}: they do different work", "Name files of your own, or one workload."
        )
    titles = ", ".join(dict.fromkeys(group.workload for group in groups))
    return Group(titles, planned, tuple(reason for group in groups for reason in group.not_applicable))


def _told_apart(planned: Sequence[Planned]) -> tuple[Planned, ...]:
    """Return the plans. Files with the same name get the folder that distinguishes them."""
    files: dict[str, set[Path]] = {}
    for plan_ in planned:
        if plan_.spec.file is not None:
            file = Path(plan_.spec.file)
            files.setdefault(file.name, set()).add(file)
    told = []
    for plan_ in planned:
        spec, file = plan_.spec, Path(plan_.spec.file or "")
        copies = files.get(file.name, set())
        if len(copies) > 1:
            spec = spec.model_copy(update={"checkout": _own_folder(file, copies)})
        told.append(replace(plan_, spec=spec))
    return tuple(told)


def _own_folder(file: Path, files: Collection[Path]) -> str:
    """Return the last component of a path that distinguishes it from other paths with the same name."""
    depth = min(len(path.parts) for path in files)
    for place in range(2, depth + 1):
        if len({path.parts[-place] for path in files}) == len(files):
            return file.parts[-place]
    return str(file.parent.relative_to(os.path.commonpath([path.parent for path in files])))


VARIED = tuple(
    option for name, role in ROLES.items() if role.several == "vary" and name != "params" for option in role.options
)
"""Settings that `--vary` takes, beside the workload's parameters."""

LISTS = tuple(option for role in ROLES.values() if role.several == "list" for option in role.options)
"""Settings whose option takes a list of values to measure."""


def variants_of(settings: RunSettings) -> list[RunSettings]:
    """Return the settings with each value of `--vary`, or unchanged without it.

    Raises:
        SettingsError: `--vary` names several settings, one that cannot vary, or a single value.
    """
    if not settings.vary:
        return [settings]
    if len(settings.vary) > 1:
        raise SettingsError(
            f"--vary names {' and '.join(settings.vary)}", "Vary one setting at a time, so that its effect is clear."
        )
    ((name, text),) = settings.vary.items()
    values = list(dict.fromkeys(value.strip() for value in text.split(",")))
    if len(values) < 2 or not all(values):
        raise SettingsError(f"--vary {name}={text} needs at least two values", f"Name them: --vary {name}=A,B.")
    if name in VARIED:
        return [settings.model_copy(update={name: value_of(name, value)}) for value in values]
    if name in RunSettings.model_fields:
        hint = f"--{name} takes a list: --{name} A,B." if name in LISTS else f"It can vary {', '.join(VARIED)}."
        raise SettingsError(f"--vary cannot vary {name}", f"{hint} It can also vary any parameter of the workload.")
    return [settings.model_copy(update={"param": {**settings.param, name: value}}) for value in values]


def _group(workload: str, variants: Sequence[RunSettings], swept: Collection[str]) -> Group:
    """Return the specs of one workload for each variant of the settings."""
    specs: dict[str, Planned] = {}
    inapplicable: list[str] = []
    for settings in variants:
        _add(specs, inapplicable, workload, settings, swept)
    if not specs:
        raise NotApplicable("; ".join(dict.fromkeys(inapplicable)), "`devbench list` shows what each workload can do.")
    return Group(workload, tuple(specs.values()), tuple(dict.fromkeys(inapplicable)))


def _add(
    specs: dict[str, Planned], inapplicable: list[str], workload: str, settings: RunSettings, swept: Collection[str]
) -> None:
    """Add the specs of a workload for one variant of the settings, and the reasons of those that do not apply."""
    envs = environments(settings)
    for case, params, own_loop in _cases(workload, settings, swept):
        resolved = registry.resolve(workload, params, settings.worker_timeout)
        _refuse_script_options(resolved, settings)
        data = _data(resolved.data, settings)
        for backend, env, loop in itertools.product(settings.backend, envs, settings.loop or (own_loop,)):
            reason = resolved.not_on.get(backend) or registry.obstacle(resolved.offers, resolved.not_loops, loop)
            where = f"on {backend}" if backend in resolved.not_on else f"by loop {loop}"
            if not reason and settings.dtype in resolved.not_dtypes:
                reason, where = resolved.not_dtypes[settings.dtype], f"in {settings.dtype}"
            if not reason:
                reason = backends.obstacle(backend, settings.dtype, settings.xla == "on")
                where = f"on {backend}"
            if reason:
                title = f"{resolved.name}/{case}" if case else resolved.name
                inapplicable.append(f"{title} {where}: not applicable, because {reason}")
                continue
            spec = _spec(resolved, case, backend, env, loop, data, settings)
            key = spec.model_copy(update={"case": None}).key  # with a loop, two cases may be the same
            specs.setdefault(key, Planned(spec, tuple(resolved.notes), resolved.total_steps, resolved.examples))


def _refuse_script_options(resolved: Any, settings: RunSettings) -> None:
    """Check that no options of scripts are set for a workload, and no arguments for a notebook.

    Raises:
        SettingsError: One is.
    """
    used = {"arguments after --": settings.args, "--watch": settings.watch, "--workdir": settings.workdir}
    names = [name for name, value in used.items() if value]
    if settings.args and is_notebook(resolved.file or ""):
        raise SettingsError(f"{resolved.name} is a notebook, so it takes no arguments", "Set its values in its cells.")
    if names and not resolved.is_script:
        hint = "To set a parameter of a workload, use --param NAME=VALUE. `devbench list FILE` says what a file is."
        raise SettingsError(f"{resolved.name} is not a script, so it does not take {' or '.join(names)}", hint)


def _cases(
    workload: str, settings: RunSettings, swept: Collection[str]
) -> list[tuple[str | None, dict[str, Any], Loop]]:
    """Return name, parameters and loop of each case to run. The name is None if there is no case to name."""
    resolved = registry.resolve(workload, {} if settings.case else dict(settings.param), settings.worker_timeout)
    cases = resolved.cases
    for name in settings.case:
        if name not in cases:
            raise UnknownName("case", name, cases, f"{resolved.name} has {len(cases) or 'no'} cases.")
    selected = {name: cases[name] for name in settings.case} or {
        name: case for name, case in cases.items() if _agrees(case, settings.param, swept)
    }
    if not selected:
        return [(None, dict(settings.param), "as-written")]
    return [
        (
            name,
            {**{key: value for key, value in case.items() if key != "loop"}, **settings.param},
            case.get("loop", "as-written"),
        )
        for name, case in selected.items()
    ]


def _agrees(case: Mapping[str, Any], params: Mapping[str, str], swept: Collection[str]) -> bool:
    """Return whether a case agrees with the requested parameters and sets none that is swept."""
    return not any(key in case for key in swept) and all(
        str(case[key]) == str(value) for key, value in params.items() if key in case
    )


def _data(name: str | None, settings: RunSettings) -> Data:
    if name is None:
        return Data(kind="own")
    return datasets.locate(name, settings.data, settings.data_dir)


def spec_of_settings(workload: str, settings: RunSettings) -> Spec:
    """Return a spec with everything that settings say, before the workload is read."""
    threads = settings.threads or thread_count()
    return Spec(
        workload=workload,
        file_sha256="",
        params={},
        backend=settings.backend[0],
        loop="as-written",
        threads=Threads(intra=threads, inter=threads),
        data=Data(kind="own"),
        **settings.model_dump(include=set(Execution.model_fields)),
    )


def environments(settings: RunSettings) -> tuple[Env | None, ...]:
    """Return the Python environments that the settings name. (None,), devbench's own, if they name none.

    Raises:
        SettingsError: One cannot be used.
    """
    return tuple(_env(name, Path(path)) for name, path in settings.env.items()) or (None,)


@cache
def _env(name: str, path: Path) -> Env:
    found = python_env.read(name, path)
    packages = worker_packages.folder_for(found)
    return Env(
        name=name,
        python=found.python,
        version=found.version,
        sha256=found.digest,
        packages=dict(found.packages),
        site_packages=found.site_packages,
        path=str(packages) if packages else None,
    )


def _spec(
    resolved: Any, case: str | None, backend: str, env: Env | None, loop: Loop, data: Data, settings: RunSettings
) -> Spec:
    threads = settings.threads or thread_count()
    script = Script(arguments=settings.args or (), module=resolved.module, watch=settings.watch)
    pinned = None if loop == "as-written" else False
    return Spec(
        workload=resolved.name,
        file=resolved.file,
        file_sha256=resolved.sha256,
        case=case,
        params=resolved.params,
        backend=backend,
        env=env,
        loop=loop,
        script=script if resolved.is_script else None,
        what_ifs=settings.change,
        xla={"auto": pinned, "on": True, "off": False}[settings.xla],
        threads=Threads(intra=threads, inter=threads),
        data=data,
        **settings.model_dump(include=set(Execution.model_fields)),
    )
