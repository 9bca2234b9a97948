#pragma once

#include "tests/knn/CertifiedHarness.h"

/// Searches for the one nearest of few vectors.
namespace faiss_bits::test {

class NearestKnn : public FlatKnnCertified {
   protected:
    /// So many queries that the search is worth it. By L2 one kernel passes at
    /// once what is near, of 33 to 128 components and up to 2,048 vectors.
    static CertifiedCase of(Metric metric, int64_t n, int d) {
        CertifiedCase c;
        c.metric = metric;
        c.n = n;
        c.d = d;
        c.k = 1;
        c.q = std::max<int64_t>(17, (int64_t(1) << 26) / (n * d) + 3);
        return c;
    }
};

} // namespace faiss_bits::test
