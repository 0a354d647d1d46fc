# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device of PyTorch's without hardware: memory that the host cannot read, streams that tell of operators which do not wait
for each other (``complaints()``), and a backend for process groups, emulated_ccl, that sends its tensors alone, as NCCL does."""

import pathlib
import types

import torch
import torch.distributed
import torch.utils.cpp_extension

lacks = ("sparse", "mkldnn", "quantized", "distributed", "negative", "conjugate", "convolutions", "registered_with_fsdp",
         "copies_of_models", "models_that_are_split", "cannot_be_combined_and_stay", "other_memory",
         "goes_on_from_a_saved_state", "groups_timeout", "gradient_scaler", "unused_parameters", "overflow_that_one_process_has")
"""Words in the names of tests that need what PyTorch has not for devices of this kind, or this one does not do."""

folder = pathlib.Path(__file__).parent
extension = torch.utils.cpp_extension.load(
    name="emulated_device_extension", sources=[str(folder / "device.cpp")], extra_cflags=["-std=c++20", "-O1", "-w"])

complaints, operators, set_limit, let_fail = (
    extension.complaints, extension.operators, extension.set_limit, extension.let_fail)


def _make_backend(store, rank, size, timeout):
    return extension.make_backend(torch.distributed.ProcessGroupGloo(store, rank, size, timeout))


module = types.ModuleType("torch.emulated")
module.is_available = lambda: True
module.is_initialized = lambda: True
module.device_count = lambda: 1
module.current_device = lambda: 0
module.set_device = lambda device: None
module._is_in_bad_fork = lambda: False
module.manual_seed_all = lambda seed: None
module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
module.get_device_properties = lambda device=None: types.SimpleNamespace(major=1, minor=0, multi_processor_count=1)
module.Stream = lambda priority=0: torch.Stream(torch.device("emulated"), priority=priority)
module.Event = lambda: torch.Event(torch.device("emulated"))
module.current_stream = lambda device=None: torch.accelerator.current_stream()
module.stream = lambda stream: stream  # which is a context manager
module.current_device = lambda: 0

torch.utils.rename_privateuse1_backend("emulated")
torch._register_device_module("emulated", module)
torch.utils.generate_methods_for_privateuse1_backend()
torch.distributed.Backend.register_backend("emulated_ccl", _make_backend, devices=["emulated"])
