// FAISS 1.7.3 uses its types without it, which GCC 13 refuses.
#include <cstdint>

#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>

#include "tests/dropin/IvfProbes.h"
#include "tests/ivf/ProductHarness.h"
#include "tests/ivf/ScalarHarness.h"

/// FAISS's own GpuIndexIVFScalarQuantizer and GpuIndexIVFPQ in a program that
/// is linked with the drop-in library first, against the canonical distances to
/// the decoded vectors in the lists that FAISS probes. FAISS's float32
/// distances, and its tables, have other bits.
namespace faiss_bits::test {
namespace {

using faiss::gpu::GpuIndexIVFPQ;
using faiss::gpu::GpuIndexIVFScalarQuantizer;

class DropinCodes : public GpuTest {};

constexpr faiss::gpu::IndicesOptions kIndices[] = {
        faiss::gpu::INDICES_CPU,
        faiss::gpu::INDICES_IVF,
        faiss::gpu::INDICES_32_BIT,
        faiss::gpu::INDICES_64_BIT};

template <class Index>
void expectCanonical(
        Index& index,
        const IvfData& data,
        int nprobe,
        const std::vector<int>& ks) {
    index.nprobe = nprobe;
    const auto lists = probesOf(index, data, nprobe);
    for (int k : ks) {
        SCOPED_TRACE(testing::Message() << "nprobe=" << nprobe << " k=" << k);
        data.expectResults(searchOnDevice(index, data.queries, k), k, lists);
    }
}

// ---- scalar codes -----------------------------------------------------------

void expectScalar(
        const IvfCase& c,
        const ScalarType& type,
        bool byResidual,
        int nprobe,
        const std::vector<int>& ks) {
    SCOPED_TRACE(
            testing::Message()
            << type.name << (byResidual ? " residuals" : "") << " of " << c);
    const ScalarData data = makeScalar(c, type.type, byResidual);
    GpuIndexIVFScalarQuantizer index(
            sharedResources(), data.coded.get(), data.config());
    expectCanonical(index, data.oracle, nprobe, ks);
}

TEST_F(DropinCodes, SmallScalarEveryKind) {
    uint32_t number = 0;
    for (const ScalarType& type : kScalarTypes) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (bool interleaved : {true, false}) {
                for (bool byResidual : {false, true}) {
                    if (!interleaved && type.type == ScalarQuantizer::QT_6bit) {
                        continue; // FAISS has none
                    }
                    IvfCase c;
                    c.metric = metric;
                    c.interleaved = interleaved;
                    c.seed = ++number;
                    c.indices = kIndices[number % 4];
                    c.d = 37;
                    // Few pairs, and more of them than lists.
                    c.q = number / 4 % 2 ? 3 : 40;
                    expectScalar(c, type, byResidual, 3, {1, 20});
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DropinCodes, ScalarManyQueriesAndNeighbours) {
    for (const ScalarType& type : kScalarTypes) {
        for (bool byResidual : {false, true}) {
            IvfCase c;
            c.metric =
                    byResidual ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
            c.n = 30000;
            c.d = 64;
            c.nlist = 40;
            c.q = 200;
            expectScalar(c, type, byResidual, 12, {1, 10, 300, 2047});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// A NaN query has no lists, and no bases either.
TEST_F(DropinCodes, ScalarResidualsOfQueriesThatAreNan) {
    IvfCase c;
    c.q = 60;
    c.d = 24;
    ScalarData data = makeScalar(c, ScalarQuantizer::QT_8bit, true);
    for (int64_t i = 0; i < c.q; i += 3) {
        data.oracle.queries[size_t(i * c.d + i % c.d)] = std::nanf("");
    }
    GpuIndexIVFScalarQuantizer index(
            sharedResources(), data.coded.get(), data.config());
    expectCanonical(index, data.oracle, 4, {7});
}

// ---- product codes ----------------------------------------------------------

struct Tables {
    bool precomputed;
    bool float16;
};
constexpr Tables kTables[] = {
        {false, false},
        {true, false},
        {false, true},
        {true, true}};

faiss::gpu::GpuIndexIVFPQConfig configOf(
        const ProductData& data,
        const Tables& tables) {
    auto config = data.config();
    config.useFloat16LookupTables = tables.float16;
    config.usePrecomputedTables = tables.precomputed;
    return config;
}

void expectProduct(
        const IvfCase& c,
        const ProductShape& shape,
        const Tables& tables,
        int nprobe,
        const std::vector<int>& ks) {
    SCOPED_TRACE(
            testing::Message()
            << shape << (tables.precomputed ? " tables" : "")
            << (tables.float16 ? " float16" : "") << " of " << c);
    const ProductData data = makeProduct(c, shape);
    GpuIndexIVFPQ index(
            sharedResources(), data.coded.get(), configOf(data, tables));
    expectCanonical(index, data.oracle, nprobe, ks);
}

TEST_F(DropinCodes, SmallProductEveryKind) {
    uint32_t number = 0;
    for (const ProductShape& shape :
         {ProductShape{16, 4, 8}, ProductShape{24, 8, 8}}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (bool interleaved : {true, false}) {
                for (const Tables& tables : kTables) {
                    if (tables.precomputed && metric != faiss::METRIC_L2) {
                        continue; // FAISS has none
                    }
                    IvfCase c;
                    c.metric = metric;
                    c.interleaved = interleaved;
                    c.seed = ++number;
                    c.indices = kIndices[number % 4];
                    c.q = number / 4 % 2 ? 3 : 40;
                    expectProduct(c, shape, tables, 4, {1, 20});
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DropinCodes, ProductFewBits) {
    for (int bits : {4, 5, 6, 8}) {
        for (const Tables& tables : kTables) {
            IvfCase c;
            c.q = tables.float16 ? 3 : 40;
            // Any number of parts, interleaved.
            expectProduct(c, {21, 7, bits}, tables, 4, {5});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(DropinCodes, ProductManyQueriesAndNeighbours) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool precomputed : {false, true}) {
            if (precomputed && metric != faiss::METRIC_L2) {
                continue;
            }
            IvfCase c;
            c.metric = metric;
            c.n = 30000;
            c.nlist = 40;
            c.q = 200;
            expectProduct(
                    c,
                    {64, 16, 8},
                    {precomputed, false},
                    12,
                    {1, 10, 300, 2047});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// FAISS does these; the results are those of the same codes. One fewer is ours.
TEST_F(DropinCodes, QueriesWithTablesThatShareNoListsAreLeftToFaiss) {
    IvfCase c;
    c.nlist = 40;
    const int k = 5;
    for (int q : {16, 17}) {
        c.q = q;
        const ProductData data = makeProduct(c, {16, 4, 8});
        GpuIndexIVFPQ index(
                sharedResources(),
                data.coded.get(),
                configOf(data, {true, false}));
        index.nprobe = 1;
        const auto lists = probesOf(index, data.oracle, 1);
        const SearchOutput found = searchOnHost(index, data.oracle.queries, k);
        for (int i = 0; i < q; ++i) {
            const auto wanted = data.oracle.resultOf(i, lists[i], k);
            ASSERT_FALSE(wanted.empty()) << i;
            for (size_t j = 0; j < wanted.size(); ++j) {
                const float distance = found.distances[i * k + j];
                if (q == 16) {
                    EXPECT_EQ(distance, float(wanted[j].key)) << i << ", " << j;
                } else {
                    EXPECT_NEAR(distance, wanted[j].key, 1e-4);
                }
            }
        }
    }
}

// Tables are turned on and off, lists grow, and are emptied.
TEST_F(DropinCodes, ProductAfterEveryChange) {
    IvfCase c;
    c.n = 4000;
    c.q = 60;
    ProductData data = makeProduct(c, {32, 8, 8});
    GpuIndexIVFPQ index(
            sharedResources(),
            data.coded.get(),
            configOf(data, {false, false}));
    for (bool precomputed : {true, false, true}) {
        index.setPrecomputedCodes(precomputed);
        expectCanonical(index, data.oracle, 6, {30});
    }
    index.reset();
    const SearchOutput none = searchOnHost(index, data.oracle.queries, 3);
    EXPECT_EQ(none.labels, std::vector<int64_t>(size_t(c.q) * 3, -1));
    index.add_with_ids(c.n, data.oracle.vectors.data(), data.oracle.ids.data());
    index.copyTo(data.coded.get());
    data.decode();
    expectCanonical(index, data.oracle, 6, {30});
}

} // namespace
} // namespace faiss_bits::test
