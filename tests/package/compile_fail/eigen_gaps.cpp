// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write the elements to a vector or matrix of their own
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <Eigen/Core>

void use(Eigen::MatrixXf& weights, Eigen::MatrixXf& other) {
#ifdef CORRECTED
  auto part = weights.col(0);
#else
  auto part = weights.row(0);
#endif
  adasum::adasum_pair(adasum::serial_space{}, part, other, part);
}
