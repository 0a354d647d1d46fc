// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace thrust {
template <class T>
struct device_ptr {
  T* address;
};
template <class T>
T* raw_pointer_cast(device_ptr<T> pointer) {
  return pointer.address;
}
}  // namespace thrust
