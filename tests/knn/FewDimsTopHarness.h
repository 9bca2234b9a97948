#pragma once

#include <limits>
#include <random>

#include "kernels/knn/nearest/FewDimsTopKernels.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {

constexpr Metric kFewDimsTopMetrics[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class FewDimsTop : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::FewDimsTop, metric, n, q, d, k);
    }

    Result expectTop(const CertifiedCase& c, Hard kind) {
        EXPECT_TRUE(planOf(c).fewDimsTop) << c.describe();
        const Result result = expectCanonical(c, kind);
        EXPECT_EQ(result.repeated, 0u);
        return result;
    }

    /// Vectors and queries of one drawing each.
    template <class Draw>
    Result expectDrawn(const CertifiedCase& c, Draw draw, int64_t most = 100) {
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(c.q * c.d);
        for (std::vector<float>* rows : {&vectors, &queries}) {
            for (float& one : *rows) {
                one = draw();
            }
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, most);
        return result;
    }
};

} // namespace faiss_bits::test
