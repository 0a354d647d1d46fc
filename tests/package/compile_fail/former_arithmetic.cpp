// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the space has a member arithmetic.*its .name., which need not be static, says how it rounds
#include <adasum/adasum.hpp>

#include <string>

/// The serial space, which says by itself how it rounds.
struct my_space : adasum::serial_space {
#ifdef CORRECTED
  std::string name = "serial, my way";
#else
  std::string arithmetic() const { return "my way"; }
#endif
  friend bool operator==(const my_space&, const my_space&) = default;
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(my_space{}, adasum::self_communicator{}, gradient);
}
