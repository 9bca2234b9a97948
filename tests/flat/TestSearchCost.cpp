/// The expected times of flat searches against those that were measured on an
/// H200, some on an H100, and what they must be anywhere.

#include "faiss_bits/flat/VectorFacts.h"
#include "kernels/knn/FlatKnnCost.h"
#include "kernels/knn/FlatKnnSummary.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedLists.h"
#include "tests/common/BenchResults.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::ImageUse;
using gpu::detail::VectorFacts;

const char* const kFlat =
#include "flat.json.inc"
        ;
const char* const kFewVectors =
#include "flat_few_vectors.json.inc"
        ;
/// The whole set of cells, and those that were measured again since.
const char* const kFewVectorsOfH100 =
#include "h100_flat_few_vectors_54fb5e6.json.inc"
        ;
const char* const kFewVectorsAgain =
#include "h100_flat_few_vectors.json.inc"
        ;
const char* const kFewVectorsAtOnce =
#include "flat_few_vectors_c013242.json.inc"
        ;
/// Long vectors, scanned in 8 bits.
const char* const kBytesOfH100 =
#include "h100_flat_d768_de21dfa.json.inc"
        ;
const char* const kSweep =
#include "flat_sweep_a2d6f75.json.inc"
        ;
const char* const kFilters =
#include "filters.json.inc"
        ;
const char* const kMetrics =
#include "metrics.json.inc"
        ;
const char* const kMetrics128 =
#include "metrics_d128.json.inc"
        ;

const float kAnything = 0;
/// FAISS's temporary memory.
constexpr size_t kBudget = size_t(1536) << 20;

Metric metricOf(const std::string& name) {
    return name == "L2"            ? Metric::L2
            : name == "IP"         ? Metric::InnerProduct
            : name == "cosine"     ? Metric::Cosine
            : name == "L1"         ? Metric::L1
            : name == "Linf"       ? Metric::Linf
            : name == "Lp"         ? Metric::Lp
            : name == "Canberra"   ? Metric::Canberra
            : name == "BrayCurtis" ? Metric::BrayCurtis
                                   : Metric::JensenShannon;
}

/// Whether a file was measured when images had 8 bits.
enum class Images { WithBytes, BeforeBytes };

/// What the bench has searched: an index after some searches, or for cosines
/// two arrays.
FlatKnnProblem problemOf(
        const ResultRow& row,
        Images images = Images::BeforeBytes) {
    FlatKnnProblem p;
    p.metric = metricOf(row.text("metric"));
    p.metricArg = float(row.number("p"));
    p.numVectors = idx_t(row.number("n"));
    p.numQueries = idx_t(row.number("q"));
    p.d = int(row.number("d"));
    p.k = int(row.number("k"));
    p.dataType = row.text("dtype") == "float16" ? DataType::Float16
            : row.text("dtype") == "bfloat16"   ? DataType::BFloat16
                                                : DataType::Float32;
    p.mode = row.text("method") == "faiss_bits" ? SearchMode::Certified
                                                : SearchMode::Plain;
    if (p.metric == Metric::Cosine) {
        return p;
    }
    p.vectorNorms = p.greatestNorm = &kAnything;
    const VectorFacts facts(true);
    FlatKnnProblem expected = p;
    if (facts.expectFor(expected) == ImageUse::NotYet) {
        expected.searchImage = &kAnything; // by now it is there
    }
    expected.imageHasBytes = images == Images::WithBytes;
    return expected;
}

double expectedMs(const FlatKnnProblem& p, const DeviceSpeed& speed = {}) {
    return flatKnnMicroseconds(planFlatKnn(p, kBudget), p, speed) / 1e3;
}

template <class Takes>
Fit fitOf(
        const char* json,
        const Takes& takes,
        Images images = Images::BeforeBytes) {
    Fit fit;
    for (const char* method : {"faiss_bits", "faiss_bits_plain"}) {
        for (const ResultRow& row : rowsOf(json, method)) {
            if (takes(row)) {
                fit.add(expectedMs(problemOf(row, images)),
                        row.number("ms"),
                        row.line());
            }
        }
    }
    return fit;
}

bool all(const ResultRow&) {
    return true;
}

/// flat_few_vectors.json was measured before lists were scored by slots: cells
/// whose lists are today took longer then.
bool isNotBySlots(const ResultRow& row) {
    const FlatKnnProblem p = problemOf(row);
    const FlatKnnPlan plan = planFlatKnn(p, kBudget);
    return !plan.fused || !scoresBySlots(*plan.fused, p);
}

TEST(SearchCost, UniformVectors) {
    const auto isUniform = [](const ResultRow& row) {
        return !row.has("data");
    };
    expectFit(fitOf(kFlat, isUniform, Images::WithBytes), 300, 0.98, 2);
    expectFit(fitOf(kFewVectors, isNotBySlots), 61, 0.97, 2);
    expectFit(fitOf(kMetrics, all), 100, 0.94, 2);
    expectFit(fitOf(kMetrics128, all), 40, 0.97, 2);
}

TEST(SearchCost, BytesOnAnH100) {
    Fit fit;
    for (const ResultRow& row : rowsOf(kBytesOfH100, "faiss_bits")) {
        fit.add(expectedMs(problemOf(row, Images::WithBytes)),
                row.number("ms"),
                row.line());
    }
    expectFit(fit, 8, 1, 1.3);
}

/// Whether one kernel makes limits and bits (FusedPlan::atOnce): such cells
/// went another way when the older files were measured.
bool isAtOnce(const ResultRow& row) {
    const FlatKnnPlan plan = planFlatKnn(problemOf(row), kBudget);
    return plan.fused && plan.fused->atOnce;
}

/// Whether products are those of digits, which came after all of these files.
bool isByDigits(const ResultRow& row) {
    const FlatKnnPlan plan = planFlatKnn(problemOf(row), kBudget);
    return plan.allPairs && plan.allPairs->byDigits;
}

bool goesAsThen(const ResultRow& row) {
    return !isAtOnce(row) && !isByDigits(row);
}

/// Lists that are scored by slots were measured on an H100 first, whose
/// multiprocessors are those of an H200; these searches read little of memory.
TEST(SearchCost, FewVectors) {
    Fit bySlots;
    for (const char* json : {kFewVectorsOfH100, kFewVectorsAgain}) {
        for (const ResultRow& row : rowsOf(json, "faiss_bits")) {
            if (!isNotBySlots(row) && !isAtOnce(row)) {
                bySlots.add(
                        expectedMs(problemOf(row)),
                        row.number("ms"),
                        row.line());
            }
        }
    }
    expectFit(bySlots, 6, 1, 1.3);
    expectFit(fitOf(kFewVectorsOfH100, goesAsThen), 56, 0.97, 1.5);
    expectFit(fitOf(kFewVectorsAgain, goesAsThen), 11, 1, 1.5);
    expectFit(fitOf(kFewVectorsAtOnce, isAtOnce), 5, 1, 1.3);
    expectFit(fitOf(kFewVectorsAtOnce, all), 8, 1, 1.5);
}

/// The sweep was measured before limits could come from strips, all pairs from
/// digits, the several nearest of few dimensions from strips of their own, and
/// before few cosines and inner products shared reads: cells whose search has
/// these now went another way then.
bool hasItsWay(const ResultRow& row) {
    const FlatKnnPlan plan = planFlatKnn(problemOf(row), kBudget);
    return (!plan.fused || plan.fused->strips.perRow == 0) &&
            !(plan.allPairs && plan.allPairs->byDigits) && !plan.fewDimsTop &&
            !(plan.direct && plan.direct->shape == DirectShape::Products);
}

/// Of odd sizes and of data from elsewhere, but none that is made to be hard;
/// cells of all data are for the record.
TEST(SearchCost, OtherData) {
    const auto isUsual = [](const ResultRow& row) {
        const std::string data = row.text("data");
        return (data == "uniform" || data == "gaussian" || data == "sift" ||
                data == "fashion_mnist") &&
                row.number("repeated") < 0.01 && hasItsWay(row);
    };
    expectFit(fitOf(kSweep, isUsual), 46, 0.8, 3);
    EXPECT_GE(fitOf(kSweep, hasItsWay).shareWithin(1.5), 0.69);
}

/// With a DeviceSelector; these cells had no part in the fit.
TEST(SearchCost, Filters) {
    Fit fit;
    const uint32_t bits = 0;
    const int32_t ids = 0;
    for (const ResultRow& row : rowsOf(kFilters, "faiss_bits")) {
        FlatKnnProblem p = problemOf(row, Images::WithBytes);
        const double allowed = row.number("allowed");
        p.allowedBits = allowed < 1 ? &bits : nullptr;
        if (allowed <= 0.75) {
            p.allowedIds = &ids;
            p.numAllowed = idx_t(allowed * double(p.numVectors));
        }
        fit.add(expectedMs(p), row.number("ms"), row.line());
    }
    expectFit(fit, 120, 0.75, 3);
}

/// The fit is a test: a model that is half or twice as much fails it.
TEST(SearchCost, AnotherModelFails) {
    for (double factor : {0.5, 2.0}) {
        Fit fit;
        for (const ResultRow& row : rowsOf(kFlat, "faiss_bits")) {
            fit.add(factor * expectedMs(problemOf(row, Images::WithBytes)),
                    row.number("ms"),
                    row.line());
        }
        EXPECT_LT(fit.shareWithin(1.5), 0.2) << fit;
    }
}

FlatKnnProblem shapeOf(idx_t n, idx_t q, int d, int k) {
    FlatKnnProblem p;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = k;
    return p;
}

TEST(SearchCost, IsFiniteForEveryShape) {
    EXPECT_EQ(expectedMs(shapeOf(1000, 0, 16, 5)), 0);
    for (idx_t n : {0, 1, 1000, 100000, 1 << 25}) {
        for (idx_t q : {1, 17, 10000, 1000000}) {
            for (int k : {1, 100, 5000, 100000}) {
                for (int metric = 0; metric <= int(Metric::Jaccard); ++metric) {
                    for (size_t budget : {size_t(0), kBudget}) {
                        FlatKnnProblem p = shapeOf(n, q, 33, k);
                        p.metric = Metric(metric);
                        p.metricArg = 3;
                        const double time =
                                flatKnnMicroseconds(planFlatKnn(p, budget), p);
                        ASSERT_TRUE(std::isfinite(time) && time > 1)
                                << "n " << n << " q " << q << " k " << k
                                << " metric " << metric << ": " << time;
                    }
                }
            }
        }
    }
}

TEST(SearchCost, ScalesWithTheDevice) {
    // Bound by products, and by the read.
    FlatKnnProblem many = shapeOf(1 << 20, 10000, 256, 10);
    FlatKnnProblem one = shapeOf(1 << 20, 1, 256, 10);
    many.searchImage = one.searchImage = &kAnything;
    DeviceSpeed half;
    half.arithmetic = 0.5;
    EXPECT_NEAR(expectedMs(many, half) / expectedMs(many), 2, 0.1);
    EXPECT_NEAR(expectedMs(one, half) / expectedMs(one), 1, 0.1);
    half = {};
    half.bytesPerSecond /= 2;
    EXPECT_NEAR(expectedMs(many, half) / expectedMs(many), 1, 0.1);
    EXPECT_GT(expectedMs(one, half) / expectedMs(one), 1.6);
    // An image that has to be made costs some reads.
    FlatKnnProblem without = many;
    without.searchImage = nullptr;
    EXPECT_NEAR(
            expectedMs(without) - expectedMs(many),
            searchImageMicroseconds(many) / 1e3,
            1e-3);
}

/// Filters that leave few vectors make it cheaper, or cost nothing.
TEST(SearchCost, OfAListCountsItsVectors) {
    const uint32_t bits = 0;
    const int32_t ids = 0;
    for (idx_t q : {1, 1000}) {
        FlatKnnProblem p = shapeOf(1 << 20, q, 128, 10);
        p.searchImage = &kAnything;
        const double whole = expectedMs(p);
        p.allowedBits = &bits;
        p.allowedIds = &ids;
        p.numAllowed = 50000;
        EXPECT_LT(expectedMs(p), 0.7 * whole) << q;
    }
}

/// Every method by its name, with the numbers of its plan.
TEST(FlatKnnSummary, OfEveryMethod) {
    const auto summary = [](FlatKnnProblem p, size_t budget = kBudget) {
        const FlatKnnPlan plan = planFlatKnn(p, budget);
        const FlatKnnSummary found = summaryOf(plan, p);
        EXPECT_EQ(found.scratchBytes, plan.bytes);
        EXPECT_EQ(found.details, plan.toString());
        EXPECT_EQ(found.microseconds, flatKnnMicroseconds(plan, p));
        EXPECT_LE(found.tileQueries, p.numQueries);
        EXPECT_LE(found.tileVectors, p.numVectors);
        return found;
    };
    EXPECT_EQ(summary(shapeOf(100, 0, 4, 1)).method, "none");

    FlatKnnSummary s = summary(shapeOf(10000, 1, 128, 10));
    EXPECT_EQ(s.method, "direct");
    EXPECT_EQ(s.candidates, 10000);
    EXPECT_EQ(s.selection, "");

    s = summary(shapeOf(2047, 8191, 9, 2014));
    EXPECT_EQ(s.method, "all_pairs");
    EXPECT_NE(s.selection, "");
    EXPECT_NE(s.details.find(s.selection), std::string::npos);

    s = summary(shapeOf(4096, 262144, 128, 1));
    EXPECT_EQ(s.method, "nearest");
    EXPECT_EQ(s.tileQueries, 131072);

    s = summary(shapeOf(1 << 20, 10000, 128, 10));
    EXPECT_EQ(s.method, "fused_tensor");
    EXPECT_EQ(s.tileQueries, 10000);
    EXPECT_GT(s.candidates, 1000);

    FlatKnnProblem p = shapeOf(1 << 20, 1000, 32, 10);
    p.metric = Metric::L1;
    EXPECT_EQ(summary(p).method, "fused_pairwise");
    p.mode = SearchMode::Plain;
    s = summary(p);
    EXPECT_EQ(s.method, "pairwise");
    EXPECT_EQ(s.candidates, 0);
    EXPECT_NE(s.selection, "");
    p.metric = Metric::Cosine;
    EXPECT_EQ(summary(p).method, "cosine");
    p.metric = Metric::L2;
    EXPECT_EQ(summary(p).method, "gemm");
    p.mode = SearchMode::Certified;
    s = summary(p, 0); // the least scratch: tiles
    EXPECT_EQ(s.method, "gemm");
    EXPECT_GT(s.candidates, 10);
    EXPECT_LT(s.tileVectors, 1 << 20);
    p.mode = SearchMode::Plain;
    p.numQueries = 5;
    EXPECT_EQ(summary(p).method, "few_queries");
}

} // namespace
} // namespace faiss_bits::test
