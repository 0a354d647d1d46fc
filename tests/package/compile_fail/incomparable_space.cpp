// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this execution space has members, but no operator==: write .friend bool operator==
#include <adasum/adasum.hpp>

/// The serial space, which also counts.
struct counting_space : adasum::serial_space {
  int* calls = nullptr;
#ifdef CORRECTED
  friend bool operator==(const counting_space&, const counting_space&) = default;
#endif
  void fence() const { ++*calls; }
};

void use(std::vector<float>& a, std::vector<float>& b) { adasum::adasum_pair(counting_space{}, a, b, a); }
