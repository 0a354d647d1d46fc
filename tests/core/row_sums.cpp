// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/row_sums.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace test_of_core_row_sums {

TEST_CASE("norms and row sums: of a Gram matrix, or as they are given") {
  // Of (3, 0), (0, 2) and (-3, 1).
  const std::vector<double> packed{9, 0, 4, -9, 2, 10};
  const adasum::row_sums_view of_matrix(adasum::gram_view(packed.data(), 3));
  CHECK(of_matrix.size() == 3);
  CHECK(of_matrix.norm(0) == 3);
  CHECK(of_matrix.norm(1) == 2);
  CHECK(of_matrix.norm(2) == doctest::Approx(3.1622776601683795));
  CHECK(of_matrix.row_sum(0) == 0);
  CHECK(of_matrix.row_sum(1) == 6);
  CHECK(of_matrix.row_sum(2) == 3);

  const std::array<double, 2> norms{5, 7}, row_sums{-11, 13};
  const adasum::row_sums_view given(norms, row_sums);
  CHECK(given.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(given.norm(i) == norms[i]);
    CHECK(given.row_sum(i) == row_sums[i]);
  }
  CHECK(adasum::row_sums_view(norms, {}).norm(1) == 7);  // for a rule of norms alone
}

}  // namespace test_of_core_row_sums
