/// Searches of GpuIndexBitsIVFScalarQuantizer against float64 distances of the
/// decoded vectors.

#include "tests/ivf/ScalarHarness.h"

namespace faiss_bits::test {
namespace {

class IvfScalarSearch : public GpuTest {};

/// Few queries, and so many that they meet in lists.
void expectExactBothWays(
        IvfCase c,
        ScalarQuantizer::QuantizerType type,
        bool byResidual,
        const std::vector<int>& ks,
        uint32_t codes = 256) {
    for (int64_t q : {3, 150}) {
        c.q = q;
        const ScalarData data = makeScalar(c, type, byResidual, codes);
        data.expectExact(std::min(4, c.nlist), ks);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

bool hasRows(ScalarQuantizer::QuantizerType type) {
    return type != ScalarQuantizer::QT_6bit;
}

TEST_F(IvfScalarSearch, SmallTypesMetricsAndLayouts) {
    for (const ScalarType& one : kScalarTypes) {
        SCOPED_TRACE(one.name);
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (bool interleaved : {true, false}) {
                for (bool byResidual : {false, true}) {
                    if (!interleaved && !hasRows(one.type)) {
                        continue;
                    }
                    SCOPED_TRACE(byResidual);
                    IvfCase c;
                    c.metric = metric;
                    c.interleaved = interleaved;
                    c.d = 21;
                    expectExactBothWays(c, one.type, byResidual, {1, 10, 100});
                }
            }
        }
    }
}

TEST_F(IvfScalarSearch, SmallDims) {
    for (const ScalarType& one : kScalarTypes) {
        SCOPED_TRACE(one.name);
        for (int d : {1, 2, 7, 8, 32, 33, 100, 128, 1030}) {
            for (bool interleaved : {true, false}) {
                if (!interleaved && !hasRows(one.type)) {
                    continue;
                }
                IvfCase c;
                c.d = d;
                c.n = 400;
                c.interleaved = interleaved;
                c.metric =
                        d % 2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
                c.seed = uint32_t(d);
                expectExactBothWays(c, one.type, d % 4 < 2, {12});
            }
        }
    }
}

TEST_F(IvfScalarSearch, SmallIdsOfAllKinds) {
    for (auto indices :
         {faiss::gpu::INDICES_64_BIT,
          faiss::gpu::INDICES_32_BIT,
          faiss::gpu::INDICES_CPU,
          faiss::gpu::INDICES_IVF}) {
        IvfCase c;
        c.indices = indices;
        c.d = 6;
        expectExactBothWays(c, ScalarQuantizer::QT_8bit, true, {1, 30, 1200});
    }
}

TEST_F(IvfScalarSearch, SmallEqualCodes) {
    // Few codes and components: many vectors are the same, and others as far.
    for (const ScalarType& one : kScalarTypes) {
        SCOPED_TRACE(one.name);
        for (bool byResidual : {false, true}) {
            IvfCase c;
            c.d = 2;
            c.n = 2500;
            expectExactBothWays(
                    c, one.type, byResidual, {1, 2, 30, 500, 3000}, 3);
        }
    }
}

TEST_F(IvfScalarSearch, SmallNumbersOfListsAndVectors) {
    for (int nlist : {1, 2, 33}) {
        for (int64_t n : {0, 1, 31, 33, 257, 3000}) {
            IvfCase c;
            c.n = n;
            c.nlist = nlist;
            c.d = 5;
            c.seed = uint32_t(n + nlist);
            const auto& one = kScalarTypes[(n + nlist) % 7];
            SCOPED_TRACE(one.name);
            expectExactBothWays(c, one.type, n % 2 == 1, {7});
        }
    }
}

TEST_F(IvfScalarSearch, SmallNanAndInfinities) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool byResidual : {false, true}) {
            for (int64_t q : {4, 150}) {
                IvfCase c;
                c.metric = metric;
                c.d = 9;
                c.q = q;
                // Any bits of float16: NaN and infinities too.
                ScalarData halves(c, [&](faiss::Index* quantizer) {
                    return trainedScalar(
                            c, ScalarQuantizer::QT_fp16, byResidual, quantizer);
                });
                // Ranges whose steps overflow, or are nothing.
                ScalarData ranges =
                        makeScalar(c, ScalarQuantizer::QT_8bit, byResidual);
                auto& trained = ranges.coded->sq.trained;
                trained[0] = 3e38f;
                trained[c.d] = 3e38f;
                trained[1] = nan;
                trained[c.d + 2] = inf;
                trained[3] = -inf;
                trained[c.d + 4] = 0;
                trained[c.d + 5] = 1e-43f;
                ranges.decode();
                for (ScalarData* data : {&halves, &ranges}) {
                    auto& queries = data->oracle.queries;
                    queries[1] = inf;
                    queries[c.d] = nan;
                    queries[2 * c.d + 3] = -3e38f;
                    data->expectExact(c.nlist, {1, 20, 1500});
                }
            }
        }
    }
}

TEST_F(IvfScalarSearch, SmallRandomShapes) {
    std::mt19937 random(21);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    for (int i = 0; i < 40; ++i) {
        const auto& one = kScalarTypes[draw(0, 6)];
        IvfCase c;
        c.metric = draw(0, 1) ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        c.n = draw(0, 2500);
        c.d = draw(1, 70);
        c.nlist = draw(1, 60);
        c.q = draw(1, 400);
        c.interleaved = !hasRows(one.type) || draw(0, 1) == 1;
        c.seed = uint32_t(i);
        const int nprobe = draw(1, c.nlist + 3);
        const int k = draw(0, 3) ? draw(1, 40) : draw(1, 3000);
        SCOPED_TRACE(one.name);
        makeScalar(c, one.type, draw(0, 1) == 1).expectExact(nprobe, {k});
    }
}

TEST_F(IvfScalarSearch, LongListsAndManyProbes) {
    IvfCase c;
    c.n = 60000;
    c.d = 12;
    c.nlist = 3;
    expectExactBothWays(c, ScalarQuantizer::QT_8bit, true, {100});
    c.n = 20000;
    c.d = 4;
    c.nlist = 2500;
    c.q = 6;
    const ScalarData data = makeScalar(c, ScalarQuantizer::QT_6bit, true);
    data.expectExact(2500, {10, 2500, 30000});
}

TEST_F(IvfScalarSearch, SmallBatchesChangeNoBit) {
    for (const ScalarType& one : kScalarTypes) {
        SCOPED_TRACE(one.name);
        IvfCase c;
        c.n = 3000;
        c.d = 40;
        c.nlist = 16;
        c.q = 400;
        const ScalarData data = makeScalar(c, one.type, true);
        const auto index = data.makeIndex();
        index->nprobe = 5;
        const int k = 30;
        const auto& queries = data.oracle.queries;
        const SearchOutput whole = searchOnDevice(*index, queries, k);
        data.oracle.expectExact(whole, 5, k);
        SearchOutput parts;
        for (int64_t q = 0; q < c.q; q += 9) {
            const int64_t count = std::min<int64_t>(9, c.q - q);
            const SearchOutput found = searchOnDevice(
                    *index,
                    {queries.begin() + q * c.d,
                     queries.begin() + (q + count) * c.d},
                    k);
            parts.distances.insert(
                    parts.distances.end(),
                    found.distances.begin(),
                    found.distances.end());
            parts.labels.insert(
                    parts.labels.end(),
                    found.labels.begin(),
                    found.labels.end());
        }
        EXPECT_TRUE(sameOutput(parts, whole));
    }
}

} // namespace
} // namespace faiss_bits::test
