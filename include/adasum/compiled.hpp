// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <memory>
#include <span>

#include "allreduce.hpp"
#include "combine.hpp"
#include "exec/serial.hpp"
#include "rules/adasum.hpp"

/// What the library adasum::compiled_mpi holds, as explicit instantiations: with `extern` before them, they are compiled
/// elsewhere. Within namespace adasum.
///
/// What runs plans and single calls among the ranks of a communicator, under rules::adasum by any schedule without an
/// inner rule.
#define ADASUM_COMPILED_ENGINE(EXTERN, COMM, T)                                        \
  EXTERN template std::unique_ptr<detail::engine_interface<T>> detail::make_engine<T>( \
      const serial_space&, const COMM&, rules::adasum&, segments_view,                 \
      detail::engine_settings<detail::no_inner_rule>);
/// A single adasum_allreduce by the default schedule.
#define ADASUM_COMPILED_ALLREDUCE(EXTERN, COMM, T, CHECKED)                                                    \
  EXTERN template report detail::allreduce_once<T>(const char*, const serial_space&, const COMM&,              \
                                                   const rules::adasum&, std::span<T>, segments_view,          \
                                                   const schedules::automatic&, const basic_options<CHECKED>&, \
                                                   rules::adasum*, const detail::destination&, const shard*);
#define ADASUM_COMPILED_REDUCTIONS(EXTERN, COMM)        \
  ADASUM_COMPILED_ENGINE(EXTERN, COMM, float)           \
  ADASUM_COMPILED_ENGINE(EXTERN, COMM, double)          \
  ADASUM_COMPILED_ALLREDUCE(EXTERN, COMM, float, true)  \
  ADASUM_COMPILED_ALLREDUCE(EXTERN, COMM, float, false) \
  ADASUM_COMPILED_ALLREDUCE(EXTERN, COMM, double, true) \
  ADASUM_COMPILED_ALLREDUCE(EXTERN, COMM, double, false)
