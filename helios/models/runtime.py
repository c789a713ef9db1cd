"""What this machine computes fast."""

from functools import cache
from importlib.util import find_spec


@cache
def supports_bf16() -> bool:
    """Whether this processor multiplies bf16 natively; elsewhere bf16 is slower than fp32."""
    if find_spec("openvino") is not None:
        from helios.models.compiled import silent_openvino

        found = silent_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        return "BF16" in found
    import torch

    flags = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(flags.get("avx512_bf16") or flags.get("amx_bf16") or flags.get("bf16"))
