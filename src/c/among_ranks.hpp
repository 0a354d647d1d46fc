// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>

#include <adasum/adasum.h>

#include "arguments.hpp"
#include "communicators.hpp"
#include "errors.hpp"
#include "plans.hpp"
#include "reports.hpp"

/// The calls that take a communicator, for C and for Fortran, whose lengths are of another type.
namespace adasum::c {

template <std::integral Length>
int allreduce(MPI_Comm comm, void* data, const call_arguments& given, const Length* lengths, std::size_t segments,
              adasum_report* report) noexcept {
  return error_of([&] {
    const auto& own = communicator_of(comm, given.call);
    std::optional<request> asked;  // made in prepare(): its segments need memory
    const element_type* type = nullptr;
    std::optional<report_place> place;
    prepare_among_ranks(own, given, [&] {
      if (given.problem) throw bad_input(given.problem);
      type = &element_type_of(given.type, given.call);
      require_aligned(data, *type, given.call);
      asked = rule_and_options_of(given);
      asked->cut = segments_of(lengths, segments, given);
      place.emplace(report, given.call);
    });
    place->take(allreduce(own, *type, data, given.count, *asked));
  });
}

template <std::integral Length>
int create_plan(MPI_Comm comm, const call_arguments& given, const Length* lengths, std::size_t segments,
                adasum_plan* plan) noexcept {
  return error_of([&] {
    const auto& own = communicator_of(comm, given.call);
    std::optional<request> asked;
    plan_place place;
    prepare_among_ranks(own, given, [&] {
      if (given.problem) throw bad_input(given.problem);
      require_pointer(plan, given.call, "plan");
      const auto& type = element_type_of(given.type, given.call);
      asked = rule_and_options_of(given);
      asked->cut = segments_of(lengths, segments, given);
      place.prepare(type, given.type);
    });
    plan->id = place.make(own, *asked);
  });
}

inline int set_timeout(MPI_Comm comm, double seconds) noexcept {
  return error_of(
      [&] { mpi_communicator_of(comm, "adasum_set_timeout").set_timeout(std::chrono::duration<double>(seconds)); });
}

}  // namespace adasum::c
