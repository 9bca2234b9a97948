/// The suite's methods in the programs of this folder: the algorithms of
/// runSelect.

#include "tests/select/SelectMethod.h"

namespace faiss_bits::test {

namespace {

SelectMethod methodOf(SelectAlgorithm algorithm) {
    const auto with = [algorithm](SelectProblem p) {
        p.algorithm = algorithm;
        return p;
    };
    return {nameOf(algorithm),
            algorithm != SelectAlgorithm::Bits,
            true,
            [with](const SelectProblem& p) {
                return selectWorkspaceBytes(with(p));
            },
            [with](const SelectProblem& p, Workspace w, cudaStream_t s) {
                runSelect(with(p), w, s);
            }};
}

} // namespace

const std::vector<SelectMethod>& contractMethods() {
    static const std::vector<SelectMethod> all = [] {
        std::vector<SelectMethod> list;
        for (SelectAlgorithm algorithm : selectAlgorithms()) {
            // It takes short rows alone, and has tests of its own.
            if (algorithm == SelectAlgorithm::ShortRows) {
                continue;
            }
            list.push_back(methodOf(algorithm));
        }
        return list;
    }();
    return all;
}

} // namespace faiss_bits::test
