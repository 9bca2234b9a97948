#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/select/SelectHarness.h"
#include "tests/select/SelectMethod.h"

/// Runs every method of the program on one case. The data is made and ranked
/// once for all of them.
namespace faiss_bits::test {

/// What the size query throws for the problem; empty if nothing.
inline std::string refusalOf(
        const SelectMethod& method,
        const SelectProblem& problem) {
    try {
        (void)method.workspaceBytes(problem);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// A method may refuse what SelectMethod says that it need not take. Nothing
/// else.
inline bool mayRefuse(const SelectMethod& method, const SelectProblem& p) {
    return (!method.idsAndBiases && (p.ids || p.colBias)) ||
            (!method.anyK && p.k > kMaxSelectK);
}

/// True if the method is right for every k, on scratch that is dirty in two
/// ways, and gives the same bits both times (once in a small test). Adds the k
/// that were not refused to `runs`.
inline ::testing::AssertionResult selectsRight(
        const SelectMethod& method,
        SelectData& data,
        const std::vector<int>& ks,
        cudaStream_t stream,
        int& runs) {
    for (int k : ks) {
        const SelectProblem p = data.problem(k);
        const std::string refusal = refusalOf(method, p);
        if (!refusal.empty()) {
            if (mayRefuse(method, p) &&
                refusal.find(method.name) != std::string::npos) {
                continue;
            }
            return ::testing::AssertionFailure()
                    << method.name << " refuses k=" << k << ": " << refusal;
        }
        const SelectResult first = data.run(k, stream, 0xFF, method);
        auto right = data.check(k, first);
        if (!right) {
            return right << "\n  " << method.name;
        }
        ++runs;
        if (isSmallTest()) {
            continue;
        }
        const SelectResult second = data.run(k, stream, 0x00, method);
        if (p.sorted ? !(second == first) : !data.check(k, second)) {
            return ::testing::AssertionFailure()
                    << method.name << ": two runs differ, k=" << k;
        }
    }
    return ::testing::AssertionSuccess();
}

/// Every method of the list on one case and every k. One that fails does not
/// keep the others from being tried. Each has to take one k or more, save where
/// it may refuse the case.
inline void expectAllSelect(
        SelectData& data,
        const std::vector<int>& ks,
        const std::vector<SelectMethod>& methods = contractMethods(),
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE(data.options().describe());
    data.rank(*std::max_element(ks.begin(), ks.end()));
    for (const SelectMethod& method : methods) {
        int runs = 0;
        const auto right = selectsRight(method, data, ks, stream, runs);
        EXPECT_TRUE(right);
        if (right && !mayRefuse(method, data.problem(1))) {
            EXPECT_GT(runs, 0) << method.name;
        }
    }
}

inline void expectAllSelect(
        const SelectCase& c,
        const std::vector<int>& ks,
        const std::vector<SelectMethod>& methods = contractMethods(),
        cudaStream_t stream = nullptr) {
    SelectData data(c);
    expectAllSelect(data, ks, methods, stream);
}

} // namespace faiss_bits::test
