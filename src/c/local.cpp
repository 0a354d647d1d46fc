// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls on one process.
#include <span>
#include <string>
#include <utility>

#include <adasum/adasum.h>
#include <adasum/build_information.hpp>
#include <adasum/version.hpp>

#include "errors.hpp"
#include "local.hpp"
#include "reports.hpp"

#ifdef ADASUM_C_WITH_EIGEN
#define ADASUM_EIGEN "yes"
#else
#define ADASUM_EIGEN "no"
#endif
#ifndef ADASUM_COMMIT  // the sources are not in a clone
#define ADASUM_COMMIT "unknown"
#endif

namespace adasum::c {

void combine(std::span<const void* const> gradients, void* out, const call_arguments& given, segments cut,
             adasum_report* report) {
  const auto& type = element_type_of(given.type, given.call);
  for (const auto* const gradient : gradients) require_aligned(gradient, type, given.call);
  require_aligned(out, type, given.call);
  auto asked = rule_and_options_of(given);
  asked.cut = std::move(cut);
  report_place place(report, given.call);
  place.take(type.combine(gradients, out, given.count, asked));
}

}  // namespace adasum::c

using namespace adasum::c;

extern "C" {

unsigned adasum_version(void) { return ADASUM_VERSION; }

const char* adasum_build_information(void) {
  const char* text = "";
  error_of([&] {
    static const std::string made = [] {
      std::string lines = adasum::build_information() + "commit: " ADASUM_COMMIT "\nEigen: " ADASUM_EIGEN "\n";
#if !defined(ADASUM_WITHOUT_MPI)
      const std::string mpi = adasum_mpi_library();
      lines += "MPI: " + mpi.substr(0, mpi.find('\n')) + "\n";
#endif
      return lines;
    }();
    text = made.c_str();
  });
  return text;
}

int adasum_pair(const void* a, const void* b, void* out, size_t count, int type, const size_t* lengths,
                size_t segments) {
  return error_of([&] {
    const auto& elements = element_type_of(type, "adasum_pair");
    for (const void* const array : {a, b, static_cast<const void*>(out)})
      require_aligned(array, elements, "adasum_pair");
    elements.pair(a, b, out, count, segments_of(lengths, segments, {"adasum_pair", count, type}));
  });
}

int adasum_combine(const void* const* gradients, size_t gradient_count, void* out, size_t count, int type,
                   const size_t* lengths, size_t segments, const char* rule, const char* options,
                   adasum_report* report) {
  return error_of([&] {
    const call_arguments given{"adasum_combine", count, type, rule, options};
    if (gradient_count > 0) require_pointer(gradients, given.call, "the list of gradients");
    require_room(gradient_count, "gradients", given.call);
    adasum::c::combine({gradients, gradient_count}, out, given, segments_of(lengths, segments, given), report);
  });
}

}  // extern "C"
