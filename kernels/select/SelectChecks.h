#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/SelectParams.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

/// Throw Error that names the argument. The first reads the shape and the
/// types only.
void checkSelectShape(const SelectProblem& problem);
void checkSelectPointers(const SelectProblem& problem);

/// Where the result goes.
SurvivorOutput outputOf(const SelectProblem& problem);

/// The part of a kernel's parameters that the problem alone decides.
SelectParams makeSelectParams(const SelectProblem& problem);

/// Of an algorithm that takes every problem.
std::string noRefusal(const SelectProblem& problem);

} // namespace faiss_bits
