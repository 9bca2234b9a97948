#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/select/SelectAlgorithm.h"
#include "tests/select/SelectHarness.h"

/// Runs every algorithm of runSelect on one case. The data is made and ranked
/// once for all of them.
namespace faiss_bits::test {

/// Those that the header promises for any k; the others stop at kMaxSelectK.
inline bool takesAnyK(SelectAlgorithm algorithm) {
    switch (algorithm) {
        case SelectAlgorithm::SampleThreshold:
        case SelectAlgorithm::BitsGlobal:
        case SelectAlgorithm::SampleSelect:
        case SelectAlgorithm::SampleSelectTwoStage:
        case SelectAlgorithm::RadixSelect:
        case SelectAlgorithm::Sort:
            return true;
        default:
            return false;
    }
}

inline std::vector<SelectAlgorithm> anyKAlgorithms() {
    std::vector<SelectAlgorithm> list;
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        if (takesAnyK(algorithm)) {
            list.push_back(algorithm);
        }
    }
    return list;
}

/// What the size query throws for the problem; empty if nothing.
inline std::string refusalOf(const SelectProblem& problem) {
    try {
        (void)selectWorkspaceBytes(problem);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// The queue methods, for comparison, may refuse given ids and biases; and an
/// algorithm, a k beyond its limit. Nothing else.
inline bool mayRefuse(const SelectProblem& p) {
    const bool anyK = takesAnyK(p.algorithm);
    const bool all = anyK || p.algorithm == SelectAlgorithm::Bits;
    return (!all && (p.ids || p.colBias)) || (!anyK && p.k > kMaxSelectK);
}

/// True if the algorithm set in `data` is right for every k, on scratch that
/// is dirty in two ways, and gives the same bits both times (once in a small
/// test). Adds the k that were not refused to `runs`.
inline ::testing::AssertionResult selectsRight(
        SelectData& data,
        const std::vector<int>& ks,
        cudaStream_t stream,
        int& runs) {
    for (int k : ks) {
        const SelectProblem p = data.problem(k);
        const std::string name = nameOf(p.algorithm);
        const std::string refusal = refusalOf(p);
        if (!refusal.empty()) {
            if (mayRefuse(p) && refusal.find(name) != std::string::npos) {
                continue;
            }
            return ::testing::AssertionFailure()
                    << name << " refuses k=" << k << ": " << refusal;
        }
        const SelectResult first = data.run(k, stream, 0xFF);
        auto right = data.check(k, first);
        if (!right) {
            return right << "\n  " << name;
        }
        ++runs;
        if (isSmallTest()) {
            continue;
        }
        const SelectResult second = data.run(k, stream, 0x00);
        if (p.sorted ? !(second == first) : !data.check(k, second)) {
            return ::testing::AssertionFailure()
                    << name << ": two runs differ, k=" << k;
        }
    }
    return ::testing::AssertionSuccess();
}

/// Every algorithm of the list on one case and every k. One that fails does
/// not keep the others from being tried. At least `takers` of them have to
/// take the case for one k or more; -1: all of them.
inline void expectAllSelect(
        SelectData& data,
        const std::vector<int>& ks,
        const std::vector<SelectAlgorithm>& algorithms = selectAlgorithms(),
        int takers = -1,
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE(data.options().describe());
    data.rank(*std::max_element(ks.begin(), ks.end()));
    const SelectAlgorithm own = data.options().algorithm;
    int took = 0;
    for (SelectAlgorithm algorithm : algorithms) {
        data.options().algorithm = algorithm;
        int runs = 0;
        EXPECT_TRUE(selectsRight(data, ks, stream, runs));
        took += runs > 0;
    }
    data.options().algorithm = own;
    ASSERT_FALSE(algorithms.empty());
    if (!::testing::Test::HasFailure()) {
        EXPECT_GE(took, takers < 0 ? int(algorithms.size()) : takers);
    }
}

inline void expectAllSelect(
        const SelectCase& c,
        const std::vector<int>& ks,
        const std::vector<SelectAlgorithm>& algorithms = selectAlgorithms(),
        int takers = -1,
        cudaStream_t stream = nullptr) {
    SelectData data(c);
    expectAllSelect(data, ks, algorithms, takers, stream);
}

} // namespace faiss_bits::test
