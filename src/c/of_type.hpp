// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/comm/any.hpp>

#include "calls.hpp"

namespace adasum::c {

template <scalar T, class Rule>
class plan_of final : public any_plan {
 public:
  void make(const any_communicator& comm, const request& asked) override {
    const auto plan_with = [&](const auto&... shard) {
      return detail::plan_for<T, allreduce_plan>(asked.call, serial_space{}, comm, segments_view(asked.cut), {},
                                                 std::get<Rule>(asked.rule), asked.choices, shard...);
    };
    plan_ = asked.part ? plan_with(*asked.part) : plan_with();
  }

  const report& run(void* data, std::size_t count) override { return plan_(elements(data, count)); }
  void start(void* data, std::size_t count) override { plan_.start(elements(data, count)); }
  bool test() override { return plan_.test(); }
  const report& wait() override { return plan_.wait(); }
  void* buffer() override {
    buffer_ = plan_.buffer();
    return buffer_.data();
  }
  void refuse(const std::string& problem, const void* data) override { plan_.refuse(problem, where(data)); }
  void refuse_start(const std::string& problem, const void* data) override {
    plan_.start_refusing(problem, where(data));
  }

 private:
  static std::span<T> elements(void* data, std::size_t count) { return {static_cast<T*>(data), count}; }
  /// Where the others' gradients lie, as far as that of this rank tells.
  std::span<T> where(const void* data) const { return data == buffer_.data() ? buffer_ : std::span<T>{}; }

  allreduce_plan<T, serial_space, any_communicator, Rule, schedules::automatic> plan_;
  std::span<T> buffer_;
};

template <scalar T>
class calls_of_elements final : public calls_of_type {  // NOLINT(*virtual-class-destructor): it is final
 public:
  constexpr explicit calls_of_elements(const char* name) : name_(name) {}

  const char* name() const override { return name_; }
  std::size_t alignment() const override { return alignof(T); }

  void pair(const void* a, const void* b, void* out, std::size_t count, segments_view cut) const override {
    adasum_pair(serial_space{}, constant_array(a, count), constant_array(b, count), array(out, count), cut);
  }

  report combine(std::span<const void* const> gradients, void* out, std::size_t count,
                 const request& asked) const override {
    std::vector<std::span<const T>> inputs;
    for (const auto* const gradient : gradients) inputs.push_back(constant_array(gradient, count));
    return std::visit(
        [&](const auto& rule) {
          return detail::combine_gradients<T>("adasum_combine", serial_space{}, rule, inputs, array(out, count),
                                              asked.cut, asked.choices);
        },
        asked.rule);
  }

  report allreduce(const any_communicator& comm, void* data, std::size_t count, const request& asked) const override {
    return std::visit(
        [&](const auto& rule) {
          return detail::allreduce_once<T>("adasum_allreduce", serial_space{}, comm, rule, array(data, count),
                                           asked.cut, schedules::automatic{}, asked.choices);
        },
        asked.rule);
  }

  std::unique_ptr<any_plan> empty_plan(const request& asked) const override {
    return std::visit(
        []<class Rule>(const Rule&) -> std::unique_ptr<any_plan> { return std::make_unique<plan_of<T, Rule>>(); },
        asked.rule);
  }

 private:
  static std::span<const T> constant_array(const void* data, std::size_t count) {
    return {static_cast<const T*>(data), count};
  }
  static std::span<T> array(void* data, std::size_t count) { return {static_cast<T*>(data), count}; }

  const char* name_;
};

}  // namespace adasum::c
