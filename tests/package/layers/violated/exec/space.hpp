// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Never compiled: stands for a header that rules/ may not see.
#pragma once
