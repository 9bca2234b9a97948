/// The suite's methods in the programs of this folder: the named methods of the
/// papers. The suite itself is tests/select/TestSelectAlgorithm*.

#include "research/queues/ResearchSelect.h"
#include "tests/select/SelectMethod.h"

namespace faiss_bits::test {

const std::vector<SelectMethod>& contractMethods() {
    static const std::vector<SelectMethod> all = [] {
        std::vector<SelectMethod> list;
        for (ResearchAlgorithm algorithm : researchAlgorithms()) {
            list.push_back(
                    {nameOf(algorithm),
                     false,
                     false,
                     [algorithm](const SelectProblem& p) {
                         return researchSelectWorkspaceBytes(algorithm, p);
                     },
                     [algorithm](
                             const SelectProblem& p,
                             Workspace w,
                             cudaStream_t s) {
                         runResearchSelect(algorithm, p, w, s);
                     }});
        }
        return list;
    }();
    return all;
}

} // namespace faiss_bits::test
