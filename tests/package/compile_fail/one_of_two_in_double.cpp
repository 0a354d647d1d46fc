// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: one of measure_in_double and mix_in_double for these elements: write both, or delete both
#include <adasum/adasum.hpp>

/// The serial space, with a part of what it does in double.
struct my_space : adasum::serial_space {
  void mix_in_double() const = delete;
#ifdef CORRECTED
  void measure_in_double() const = delete;
#endif
  friend bool operator==(const my_space&, const my_space&) = default;
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(my_space{}, adasum::self_communicator{}, gradient);
}
