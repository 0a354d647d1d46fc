// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>

#include <adasum/core/report.hpp>

namespace adasum::test {

inline bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Whether two ranks were told the same, but for the counters, which are each rank's own.
inline bool same_findings(const report& a, const report& b) {
  bool same = a.contributions() == b.contributions() && a.segments() == b.segments() && a.rule() == b.rule() &&
              a.schedule() == b.schedule() && a.measured() == b.measured();
  for (std::size_t k = 0; same && k < a.segments(); ++k) {
    same = same_number(a.result_norm(k), b.result_norm(k));
    for (std::size_t i = 0; i < a.contributions(); ++i)
      same = same && same_number(a.norm(i, k), b.norm(i, k)) && same_number(a.weight(i, k), b.weight(i, k));
  }
  return same;
}

}  // namespace adasum::test
