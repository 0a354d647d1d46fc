// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write float or double elements, or specialise adasum::scalar_traits
#include <adasum/adasum.hpp>

/// A 16-bit storage type that the library has not been told about.
struct my_bfloat16 {
  unsigned short bits;
};

#ifdef CORRECTED
template <>
struct adasum::scalar_traits<my_bfloat16> : adasum::stored_as<adasum::number_format::bfloat16> {};
#endif

void use(std::vector<my_bfloat16>& a, std::vector<my_bfloat16>& b) {
  adasum::adasum_pair(adasum::serial_space{}, a, b, a);
}
