#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/knn/CertifiedHarness.h"
#include "tests/knn/TensorHarness.h"

/// What the tests of fast searches share: everything that is promised of a
/// result, against distances in float64.
namespace faiss_bits::test {

class FusedFast : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        CertifiedCase c;
        c.metric = metric;
        c.n = n;
        c.q = q;
        c.d = d;
        c.k = k;
        c.mode = SearchMode::Fast;
        return c;
    }

    static bool isByKeys(const CertifiedCase& c) {
        FlatKnnProblem p = shapeOf(c);
        p.imageInOrder = c.imageInOrder;
        p.imageHasBytes = c.keptImage && c.imageHasBytes;
        const FlatKnnPlan plan = planOf(c, p);
        return plan.fused && answersByKeys(*plan.fused, p);
    }

    static std::vector<float> uniform(int64_t rows, int d, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> out(size_t(rows) * d);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f;
        }
        return out;
    }

    /// What images of the vectors lose.
    struct Image {
        TensorImageFacts facts;
        std::vector<float> center;
    };
    static Image imageOf(
            const CertifiedCase& c,
            const std::vector<float>& vectors) {
        FlatKnnProblem p = shapeOf(c);
        const DeviceBuffer<uint8_t> rows(packAs(c.dataType, vectors));
        p.vectors = rows.data();
        DeviceBuffer<uint8_t> memory(searchImageBytes(p), 0x7E);
        WorkspaceSlices slices({memory.data(), memory.size()});
        const SearchImage image(p, slices);
        runSearchImage(p, image, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        return {downloadFrom(image.image.facts, 1)[0],
                downloadFrom(image.center, c.d)};
    }

    /// |distance - exact| at most, of a fast search: TensorScanBound.h, with
    /// the bound of a query's residual that roundings to 11 bits have, and of
    /// the last rounding.
    class Bound {
       public:
        Bound(const CertifiedCase& c, const Image& image, const float* query)
                : c_(c), facts_(image.facts) {
            double squares = 0;
            double size = 0;
            double centers = 0;
            for (int i = 0; i < c.d; ++i) {
                const double center = image.center[i];
                const double held = c.metric == Metric::L2
                        ? double(query[i]) - center
                        : double(query[i]);
                squares += held * held;
                size += double(query[i]) * query[i];
                centers += center * center;
            }
            norm_ = std::sqrt(squares) * (1 + 1e-6);
            residual_ = 0x1.1p-11 * norm_ +
                    0x1p-20 * (std::sqrt(size) + std::sqrt(centers));
            products_ = 0x1p-30 * std::sqrt(size * centers);
        }
        double at(double exact) const {
            const bool isL2 = c_.metric == Metric::L2;
            return std::fabs(exact) * 0x1p-22 + products_ +
                    tensorScanError(
                            c_.metric,
                            c_.d,
                            norm_,
                            residual_,
                            isL2 ? norm_ + std::sqrt(exact)
                                 : double(facts_.greatestLength),
                            double(facts_.residual),
                            double(facts_.normError));
        }

       private:
        const CertifiedCase& c_;
        const TensorImageFacts& facts_;
        double norm_;
        double residual_;
        double products_;
    };

    /// Everything that is promised of some rows. Returns the least share of the
    /// k nearest that the bound says have to be among the results.
    double checkFast(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            const KnnResult& result,
            int64_t most = 6) {
        const Image image = imageOf(c, vectors);
        const bool largest = isSimilarity(c.metric);
        const double sign = largest ? -1 : 1;
        double least = 1;
        for (int64_t i = 0; i < std::min(c.q, most); ++i) {
            const int64_t row = c.q <= most ? i : i * (c.q - 1) / (most - 1);
            const float* query = queries.data() + row * c.d;
            const Bound bound(c, image, query);
            // Keys: smallest first. NaN vectors have none.
            std::vector<double> keys(c.n, NAN);
            std::vector<int64_t> order;
            for (int64_t v = 0; v < c.n; ++v) {
                if (c.allowedOf > 0 && v % c.allowedOf != 0) {
                    continue;
                }
                keys[v] = sign *
                        canonicalDistance64(
                                  c.metric,
                                  c.p,
                                  query,
                                  vectors.data() + v * c.d,
                                  c.d);
                if (!std::isnan(keys[v])) {
                    order.push_back(v);
                }
            }
            std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
            });
            const float* distances = result.distances.data() + row * c.k;
            const int64_t* ids = result.ids.data() + row * c.k;
            std::vector<bool> in(c.n);
            for (int place = 0; place < c.k; ++place) {
                const int64_t id = ids[place];
                if (id < 0 || id >= c.n || in[id] || std::isnan(keys[id])) {
                    ADD_FAILURE() << "query " << row << " place " << place
                                  << ": " << id;
                    return 0;
                }
                in[id] = true;
                const double key = sign * double(distances[place]);
                if (c.metric == Metric::L2) {
                    EXPECT_GE(key, 0);
                }
                EXPECT_LE(std::fabs(key - keys[id]), bound.at(keys[id]))
                        << "query " << row << " vector " << id;
                // The nearest `place + 1` have keys up to this.
                const double exact = keys[order[place]];
                EXPECT_LE(std::fabs(key - exact), bound.at(exact))
                        << "query " << row << " place " << place;
                if (place > 0) {
                    const double before = sign * double(distances[place - 1]);
                    EXPECT_TRUE(
                            before < key ||
                            (before == key && ids[place - 1] < id))
                            << "query " << row << " place " << place;
                }
            }
            // A vector that is missing is not nearer than the k-th, by its key.
            const double last = sign * double(distances[c.k - 1]);
            const double kth = keys[order[c.k - 1]];
            int64_t sure = 0;
            for (int place = 0; place < c.k; ++place) {
                const int64_t id = order[place];
                const double far = keys[id] + bound.at(keys[id]);
                EXPECT_TRUE(in[id] || far >= last)
                        << "query " << row << ": " << id << " is missing";
                sure += far < kth - bound.at(kth);
            }
            least = std::min(least, double(sure) / c.k);
            if (HasFailure()) {
                ADD_FAILURE() << c.describe();
                return 0;
            }
        }
        return least;
    }

    /// Uniform vectors, which no query is repeated of.
    void expectFast(const CertifiedCase& c, double leastRecall) {
        SCOPED_TRACE(c.describe());
        auto vectors = uniform(c.n, c.d, 1);
        auto queries = uniform(c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        if (!c.exactQueries) {
            roundAllTo(c.dataType, queries);
        }
        const Result result = search(c, vectors, queries);
        if (isByKeys(c)) {
            EXPECT_EQ(result.repeated, 0u);
            EXPECT_EQ(result.rescored, 0u);
            EXPECT_GE(checkFast(c, vectors, queries, result), leastRecall);
        } else {
            // Other GPUs have no such scan.
            EXPECT_NE(shapeOf(c).device.computeCapability, 90);
            check(c, vectors, queries, result, 6);
        }
    }

    void expectAsCertified(CertifiedCase c) {
        SCOPED_TRACE(c.describe());
        EXPECT_FALSE(isByKeys(c));
        const auto vectors = uniform(c.n, c.d, 1);
        const auto queries = uniform(c.q, c.d, 2);
        const Result fast = search(c, vectors, queries);
        c.mode = SearchMode::Certified;
        const Result certified = search(c, vectors, queries);
        EXPECT_EQ(fast.ids, certified.ids);
        EXPECT_EQ(fast.distances, certified.distances);
    }
};

} // namespace faiss_bits::test
