// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "calls.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <adasum/adasum.h>
#include <adasum/chrome_trace.hpp>
#include <adasum/combine.hpp>
#include <adasum/compiled_tables.hpp>
#include <adasum/core/error.hpp>
#include <adasum/detail/engine/collective_setup.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/schedules/automatic.hpp>

#include "arguments.hpp"

namespace adasum::c {
namespace {

/// Any compiler's 16-bit numbers: only the bits are looked at.
template <number_format Format>
struct bits_of {
  std::uint16_t bits;
};

}  // namespace
}  // namespace adasum::c

template <adasum::number_format Format>
struct adasum::scalar_traits<adasum::c::bits_of<Format>> : adasum::stored_as<Format> {};

namespace adasum::c {
namespace {

/// As soon as the library is loaded, as Chrome's traces begin before the first call. No program fails for them.
[[maybe_unused]] const bool traces = [] {
  try {
    trace_from_environment();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
  }
  return true;
}();

const serial_space& space() {
  static const serial_space one;
  return one;
}

template <scalar T>
void pair_of(const void* a, const void* b, void* out, std::size_t count, segments_view cut) {
  const auto array = [count](const void* data) { return std::span(static_cast<const T*>(data), count); };
  adasum_pair(space(), array(a), array(b), std::span(static_cast<T*>(out), count), cut);
}

template <scalar T>
report combination_of(std::span<const void* const> gradients, void* out, std::size_t count, request& asked) {
  std::vector<std::span<const T>> inputs;
  for (const auto* const gradient : gradients) inputs.emplace_back(static_cast<const T*>(gradient), count);
  return adasum::detail::combine_gradients<T>("adasum_combine", space(), asked.rule, inputs,
                                              std::span(static_cast<T*>(out), count), asked.cut, asked.choices);
}

template <scalar T>
constexpr element_type described{to_string(format_of<T>), alignof(T), &adasum::detail::table_of_space<T, serial_space>,
                                 &pair_of<T>, &combination_of<T>};

adasum::detail::space_ref space_for(const element_type& type) { return {*type.of_space, &space()}; }

/// What a call or a plan is made for; the engine works on copies.
adasum::detail::plan_arguments arguments_of(const adasum::detail::space_ref& where,
                                            const adasum::detail::communicator_ref& comm, const request& asked,
                                            const schedules::automatic& schedule) {
  return {asked.call, where, comm, asked.rule, schedule, asked.cut, asked.choices};
}

}  // namespace

const element_type& element_type_of(int type, const char* call) {
  switch (type) {
    case ADASUM_DOUBLE: return described<double>;
    case ADASUM_FLOAT: return described<float>;
    case ADASUM_HALF: return described<bits_of<number_format::binary16>>;
    case ADASUM_BFLOAT16: return described<bits_of<number_format::bfloat16>>;
    default:
      throw bad_input({call, ": there is no type ", type,
                       "; there are ADASUM_DOUBLE (1), ADASUM_FLOAT (2), ADASUM_HALF (3), ADASUM_BFLOAT16 (4)"});
  }
}

adasum::detail::communicator_ref ranks_of(const any_communicator& comm) {
  static const serial_space only_copies(instruction_set::baseline);
  return adasum::detail::ref_to_communicator(only_copies, comm);
}

void fail_among_ranks(const adasum::detail::communicator_ref& comm, const call_arguments& given) {
  adasum::detail::collective_setup(given.call, comm, asks_for_agreement(given.options)).run([](auto&) { throw; });
  throw;
}

report allreduce(const any_communicator& comm, const element_type& type, void* data, std::size_t count,
                 const request& asked) {
  const schedules::automatic schedule;
  adasum::detail::plan_ptr made;
  return adasum::detail::run_once(arguments_of(space_for(type), ranks_of(comm), asked, schedule),
                                  static_cast<std::byte*>(data), count, made);
}

void any_plan::make(const any_communicator& comm, const element_type& type, const request& asked) {
  make(space_for(type), ranks_of(comm), asked);
}
void any_plan::make(const adasum::detail::space_ref& where, const adasum::detail::communicator_ref& comm,
                    const request& asked) {
  const schedules::automatic schedule;
  auto given = arguments_of(where, comm, asked, schedule);
  if (asked.part) given.mine = &*asked.part;
  adasum::detail::collective_setup(given.call, given.comm, given.choices.check_agreement)
      .run([&](adasum::detail::collective_setup& together) { held_.reset(new adasum::detail::plan(given, together)); });
}

const report& any_plan::run(void* data, std::size_t count) {
  auto* const elements = static_cast<std::byte*>(data);
  return held_->run(elements, count, held_->problem_with(elements, count));
}
void any_plan::start(void* data, std::size_t count) {
  auto* const elements = static_cast<std::byte*>(data);
  held_->start(elements, count, held_->problem_with(elements, count));
}

void* any_plan::buffer() { return buffer_ = held_->buffer("buffer"); }

any_plan::array any_plan::where(const void* data) const {
  if (buffer_ == nullptr || data != buffer_) return {nullptr, 0};
  return {buffer_, held_->segments().all().end};
}
void any_plan::refuse(const std::string& problem, const void* data) {
  const auto [elements, count] = where(data);
  held_->run(elements, count, problem);
  throw bad_input(problem);
}
void any_plan::refuse_start(const std::string& problem, const void* data) {
  const auto [elements, count] = where(data);
  held_->start(elements, count, problem);
}

}  // namespace adasum::c
