"""Telemetry: what one process used in its steady state, and what the machine did meanwhile."""

from __future__ import annotations

from pydantic import Field

from bench.model.record import Record


class Telemetry(Record):
    """Counters over the steady state of one process."""

    wall_seconds: float = Field(description="length of the steady state")
    cpu_seconds: float | None = Field(None, description="CPU time of the worker, all threads and child processes")
    peak_rss_bytes: int | None = Field(None, description="highest memory use in the lifetime of the worker")
    load_before: float | None = Field(None, description="1-minute load average before the run")
    throttled_seconds: float | None = Field(None, description="throttled time, summed over CPUs")
    throttled_periods: int | None = Field(None, description="throttled periods of the CPU quota")
    stolen_seconds: float | None = Field(None, description="stolen time, summed over CPUs")
    package_joules: float | None = Field(None, description="energy of the CPU packages (RAPL), all processes")
    gpu_utilization_before: float | None = Field(
        None, description="share of time in which the GPU was busy before the run, from 0 to 1"
    )
    gpu_utilization_ratio: float | None = Field(
        None, description="mean share of time in which the GPU was busy, from 0 to 1"
    )
    gpu_memory_bytes: int | None = Field(None, description="highest GPU memory use")
    gpu_power_watts: float | None = Field(None, description="mean power of the GPU")
    gpu_joules: float | None = Field(None, description="energy from the GPU's own counter")
    gpu_sm_clock_hz: float | None = Field(None, description="mean clock of the GPU's processors")
    gpu_sm_clock_spread: float | None = Field(None, description="(highest - lowest) / mean of that clock")
    gpu_temperature_celsius: float | None = Field(None, description="highest temperature of the GPU")
    gpu_temperature_rise_celsius: float | None = Field(
        None, description="temperature at the end minus temperature at the start"
    )
    gpu_throttle_reasons: list[str] = Field(
        default_factory=list, description="why the GPU lowered its clock, as NVML names it"
    )
