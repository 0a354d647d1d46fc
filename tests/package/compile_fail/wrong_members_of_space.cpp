// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the space's members measure_in_double and mix_in_double are not .void measure_in_double\(
// expect: the space's for_recombining is not a function .for_recombining\(const my_space&\)
// expect: the space has some members of a device_space, but not all
#include <adasum/adasum.hpp>

/// Serial spaces with members that are not those that the library would ask for.
struct sums_in_float : adasum::serial_space {
#ifdef CORRECTED
  using sums = double;
#else
  using sums = float;
#endif
  template <class T>
  void measure_in_double(const adasum::slice& part, std::span<const T* const> vectors, sums* gram) const {
    measure(part, vectors, gram);
  }
  template <class From, class To>
  void mix_in_double(const adasum::slice&, std::span<const From* const>, const sums*, To*) const {}
};

struct member_for_recombining : adasum::serial_space {
#ifndef CORRECTED
  adasum::serial_space for_recombining() const { return {}; }
#endif
};

struct wrong_space_for_recombining : adasum::serial_space {
#ifdef CORRECTED
  friend auto for_recombining(const wrong_space_for_recombining&) { return for_recombining(adasum::serial_space()); }
#else
  friend int for_recombining(const wrong_space_for_recombining&) { return 1; }
#endif
};

struct part_of_a_device : adasum::serial_space {
#ifndef CORRECTED
  void upload(const void*, void*, std::size_t) const {}
  void download(const void*, void*, std::size_t) const {}
#endif
};

template <class Space>
struct with_equality : Space {
  friend bool operator==(const with_equality&, const with_equality&) { return true; }
};

void use(std::vector<float>& gradient) {
  const adasum::self_communicator alone;
  adasum::adasum_allreduce(with_equality<sums_in_float>{}, alone, gradient);
  adasum::adasum_allreduce(with_equality<member_for_recombining>{}, alone, gradient);
  adasum::adasum_allreduce(with_equality<wrong_space_for_recombining>{}, alone, gradient);
  adasum::adasum_allreduce(with_equality<part_of_a_device>{}, alone, gradient);
}
