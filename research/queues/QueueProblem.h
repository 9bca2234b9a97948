#pragma once

#include <string>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// Why the queue methods and partial bitonic sort cannot take the problem, or
/// an empty string.
std::string queueRefusal(const SelectProblem& problem);

/// Throw Error that names the argument: of the shape, and of the pointers that
/// a run needs besides.
void checkQueueShape(const SelectProblem& problem);
void checkQueuePointers(const SelectProblem& problem);

} // namespace faiss_bits
