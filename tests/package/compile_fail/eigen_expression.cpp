// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write expression.eval
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <Eigen/Core>

void use(Eigen::VectorXf& a, const Eigen::VectorXf& b) {
#ifdef CORRECTED
  const Eigen::VectorXf sum = a + b;
#else
  const auto sum = a + b;
#endif
  adasum::adasum_pair(adasum::serial_space{}, a, sum, a);
}
