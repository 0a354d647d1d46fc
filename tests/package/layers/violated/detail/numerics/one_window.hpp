// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Never compiled: stands for a header that its own layer and detail/engine/ may see.
#pragma once
