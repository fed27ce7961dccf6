"""The JAX backend: guard it before it starts, choose it, say which one it is.

Programs, tests and benchmarks call `protect()` first thing. JAX is imported only inside
the functions that need it.
"""

import importlib.metadata
import os
import platform as host
import sys
import warnings
from typing import Any

PLATFORMS = ("auto", "cpu", "gpu", "tpu")

# JAX's default CPU fusion gives wrong sums of squares of vmapped matrix-vector products
# in jaxlib 0.10.2 (https://github.com/jax-ml/jax/issues/39103) and slows convolutions
# in all of these: an empty list of fusion types switches it off. The default order of
# operations on a CPU, made for running them side by side, slows a search with its many
# small ones (see docs/decisions.md). XLA stops the program at a flag that it does not
# know, so only versions that were tried are listed.
_FLAGS = {
    "--xla_cpu_experimental_ynn_fusion_type": "",
    "--xla_cpu_enable_concurrency_optimized_scheduler": "false",
}
_JAXLIBS = ("0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1")

_INSTALL = {
    platform: f"install JAX for {kind} with: .venv/bin/python -m pip install "
    f'-e ".[{extra}]" --constraint constraints.txt'
    for platform, kind, extra in (
        ("gpu", "NVIDIA GPUs", "cuda"),
        ("tpu", "TPUs", "tpu"),
    )
}

# What JAX raises for a platform that is not there; the second one where JAX_PLATFORMS
# leaves nothing.
_ABSENT = (RuntimeError, AssertionError)


def protect() -> None:
    """Switches off what is faulty or slow in JAX on the CPU, before it starts.

    Adds flags to the environment variable XLA_FLAGS where the installed jaxlib is known
    to have them. Flags that the user set stay, these included. Calling it again does
    nothing.

    Warns:
      RuntimeWarning: JAX has already started without the flags, so that it is too late.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    missing = [f"{name}={value}" for name, value in _FLAGS.items() if name not in flags]
    if not missing or importlib.metadata.version("jaxlib") not in _JAXLIBS:
        return
    if _backend_started():
        warnings.warn(
            f"JAX has already started without XLA_FLAGS={' '.join(missing)!r} and on "
            "the CPU may be slow or wrong: call jaxsearch.backend.protect() before any "
            "JAX work",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    os.environ["XLA_FLAGS"] = " ".join([flags, *missing]).strip()


def select(platform: str = "auto") -> None:
    """Makes a platform JAX's default for everything that follows.

    Args:
      platform: "auto" takes what JAX prefers, an accelerator where it sees one; "cpu",
        "gpu" and "tpu" accept nothing else. Called before any JAX work, "cpu" leaves an
        accelerator untouched.

    Raises:
      ValueError: an unknown name, or JAX cannot reach such a device.
    """
    if platform not in PLATFORMS:
        raise ValueError(
            f"unknown device {platform!r}: choose one of {', '.join(PLATFORMS)}"
        )
    import jax

    if platform == "cpu" and not _backend_started():
        jax.config.update("jax_platforms", "cpu")
    try:
        device = jax.local_devices(backend=None if platform == "auto" else platform)[0]
        if device.platform != jax.default_backend():
            jax.config.update("jax_default_device", device)
    except _ABSENT as error:
        raise ValueError(_absent(platform)) from error


def describe() -> str:
    """One line: backend, device count and kind, and the versions that matter."""
    import jax

    default = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    devices = jax.devices(default.platform if default else None)
    count = f"{len(devices)} device" + ("s" if len(devices) != 1 else "")
    if (processes := jax.process_count()) > 1:
        count += f" in {processes} processes"
    jax_version, jaxlib_version = map(importlib.metadata.version, ("jax", "jaxlib"))
    return (
        f"backend {devices[0].platform}, {count} ({devices[0].device_kind}), "
        f"jax {jax_version}, jaxlib {jaxlib_version}, python {host.python_version()}"
    )


def device_bytes() -> int:
    """The memory of all devices together; of the hosts for CPU devices."""
    import jax

    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    limits = [each["bytes_limit"] for each in stats if "bytes_limit" in each]
    return (sum(limits) or host_bytes()) * jax.process_count()


def host_bytes() -> int:
    """The memory of this machine, without that of accelerators."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_device() -> Any:
    """JAX's device for the memory of the host, beside whatever accelerator.

    Raises:
      ValueError: JAX was told to leave out the CPU.
    """
    import jax

    try:
        return jax.local_devices(backend="cpu")[0]
    except _ABSENT:
        present = os.environ.get("JAX_PLATFORMS")
        raise ValueError(
            "nothing can be kept in the host's memory, since JAX leaves out the CPU: "
            f"add cpu to JAX_PLATFORMS (now {present})"
        ) from None


def _backend_started() -> bool:
    """Whether JAX holds devices already; the bridge is loaded with `import jax`."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bridge.backends_are_initialized()


def _absent(platform: str) -> str:
    import jax

    try:
        present = ", ".join(sorted({device.platform for device in jax.devices()}))
    except _ABSENT:
        present = "none"
    remedies = [_INSTALL[platform]] if platform in _INSTALL else []
    if restricted := os.environ.get("JAX_PLATFORMS"):
        remedies.insert(0, f"unset JAX_PLATFORMS (now {restricted})")
    return (
        f"asked for device {platform!r}, but the devices that JAX sees are: {present}; "
        + ", and ".join(remedies)
    )
