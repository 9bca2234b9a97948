#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/select/Select.h"

namespace faiss_bits::test {

/// One way to select, with the calls that runSelect has. `problem.algorithm`
/// is not read.
struct SelectMethod {
    std::string name;  ///< as errors have it
    bool anyK = false; ///< the header promises any k, not just kMaxSelectK
    bool idsAndBiases = false; ///< and given ids and biases
    std::function<size_t(const SelectProblem&)> workspaceBytes;
    std::function<void(const SelectProblem&, Workspace, cudaStream_t)> run;
};

/// GoogleTest shows it.
inline void PrintTo(const SelectMethod& method, std::ostream* out) {
    *out << method.name;
}

/// The methods that a program holds to the contract. Every program with the
/// suite (TestSelectAlgorithm*.cpp) defines it: RunSelectMethods.cpp here,
/// research/tests/ResearchMethods.cpp there.
const std::vector<SelectMethod>& contractMethods();

/// Those of them that take any k.
inline std::vector<SelectMethod> anyKMethods() {
    std::vector<SelectMethod> list;
    for (const SelectMethod& method : contractMethods()) {
        if (method.anyK) {
            list.push_back(method);
        }
    }
    return list;
}

} // namespace faiss_bits::test
