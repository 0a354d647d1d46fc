// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write to an array that is not const
#include <adasum/adasum.hpp>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = const std::vector<float>;
#endif

void use(array& gradient) { adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient); }
