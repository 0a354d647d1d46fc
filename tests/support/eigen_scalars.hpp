// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/scalar.hpp>

// Apart from scalars.hpp, since Eigen takes as long to compile as the rest of most tests.
#ifdef ADASUM_TEST_EIGEN
#include <Eigen/Core>
template <>
struct adasum::scalar_traits<Eigen::half> : adasum::stored_as<adasum::number_format::binary16> {};
template <>
struct adasum::scalar_traits<Eigen::bfloat16> : adasum::stored_as<adasum::number_format::bfloat16> {};
#endif
