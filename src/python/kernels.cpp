// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels.hpp"

#include <adasum/core/error.hpp>
#include <adasum/core/scalar.hpp>
#include <adasum/detail/engine/call_signature.hpp>
#include <adasum/detail/engine/collective_setup.hpp>
#include <adasum/exec/aten.hpp>
#include <adasum/exec/serial.hpp>

#if ADASUM_WITH_CUDA
#include "compiled_cuda_space.hpp"
#endif

namespace adasum::python {
namespace {

template <class Space>
const adasum::detail::space_table& table_of(int type) {
  using adasum::detail::table_of_space;
  switch (static_cast<number_format>(type)) {
    case number_format::binary64: return table_of_space<double, Space>;
    case number_format::binary32: return table_of_space<float, Space>;
    case number_format::binary16: return table_of_space<c10::Half, Space>;
    default: return table_of_space<c10::BFloat16, Space>;
  }
}

template <class Space>
void make_on(at::Device device, const processor_names& processors, c::any_plan& plan, group_worker& worker, int type,
             const c::request& asked, const c::call_arguments& given) {
  std::optional<Space> space;
  const auto on_space = [&] { return adasum::detail::space_ref{table_of<Space>(type), &*space}; };
  // Not only with check_agreement: ranks that round differently would go on with different parameters.
  adasum::detail::collective_setup(given.call, worker.host_comm(), c::asks_for_agreement(given.options))
      .run([&](auto& others) {
        const auto kind = c10::DeviceTypeName(device.type(), true);
        const auto known = processors.find(kind);
        space.emplace(device, known == processors.end() ? "" : known->second);
        adasum::detail::call_signature mine;
        mine.set(mine.activity, "making a plan for " + kind);
        mine.set(mine.space, on_space().arithmetic());
        others.meet(mine);
      });
  worker.connect(device, asked.call);
  plan.make(on_space(), adasum::detail::ref_to_communicator(*space, worker.comm()), asked);
}

}  // namespace

const char* to_string(kernels which) { return which == kernels::pytorch ? "pytorch" : "compiled"; }

kernel_choice kernel_choice_of(const std::string& text) {
  if (text == "auto") return std::nullopt;
  for (const auto which : {kernels::pytorch, kernels::compiled})
    if (text == to_string(which)) return which;
  throw bad_input({"adasum.torch.State: kernels must be \"auto\", \"pytorch\" or \"compiled\", not \"", text, "\""});
}

kernels kernels_for(at::Device device, kernel_choice choice) {
  const bool has_compiled = device.is_cpu() || (ADASUM_WITH_CUDA && device.is_cuda());
  if (!has_compiled && choice == kernels::compiled)
    throw bad_input({"adasum.torch: kernels=\"compiled\": this package has no compiled kernels for ", device.str()});
  return choice.value_or(has_compiled ? kernels::compiled : kernels::pytorch);
}

void make_plan(c::any_plan& plan, group_worker& worker, at::Device device, kernels which, int type,
               const c::request& asked, const c::call_arguments& given, const processor_names& processors) {
  if (which == kernels::compiled && device.is_cpu()) {
    const serial_space space;
    return plan.make({*c::element_type_of(type, asked.call).of_space, &space}, worker.host_comm(), asked);
  }
#if ADASUM_WITH_CUDA
  if (which == kernels::compiled)
    return make_on<compiled_cuda_space>(device, processors, plan, worker, type, asked, given);
#endif
  make_on<aten_space>(device, processors, plan, worker, type, asked, given);
}

}  // namespace adasum::python
