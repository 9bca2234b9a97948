/// Sums of clusters against plain float64: whole numbers, which are exact in
/// any order, at both sides of every edge; and the same bits every run.

#include <cmath>

#include "kernels/cluster/ClusterSums.h"
#include "tests/cluster/ClusterCase.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class ClusterSums : public GpuTest {};

/// What a run takes and leaves, on the device.
struct SumsRun {
    SumsRun(const ClusterCase& c, const ClusterInput& input, size_t shift = 0)
            : vectors(input.vectors, 0xFF, shift),
              labels(input.labels),
              labels32(std::vector<int32_t>(
                      input.labels.begin(),
                      input.labels.end())),
              weights(input.weights),
              distances(input.distances),
              sums(c.k * c.d),
              weightSums(c.k),
              counts(c.k),
              objective(1) {
        problem.n = c.n;
        problem.d = c.d;
        problem.k = c.k;
        problem.vectors = vectors.data();
        problem.labels = labels.data();
        problem.weights = c.weighted ? weights.data() : nullptr;
        problem.distances = distances.data();
        problem.outSums = sums.data();
        problem.outWeights = weightSums.data();
        problem.outCounts = counts.data();
        problem.outObjective = objective.data();
    }

    void operator()(cudaStream_t stream = nullptr) {
        const size_t bytes = clusterSumsWorkspaceBytes(problem);
        const DeviceBuffer<uint8_t> scratch(bytes);
        runClusterSums(problem, {scratch.data(), bytes}, stream);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    ClusterReference result() const {
        return {sums.download(),
                weightSums.download(),
                counts.download(),
                objective.download()[0]};
    }

    DeviceBuffer<float> vectors;
    DeviceBuffer<int64_t> labels;
    DeviceBuffer<int32_t> labels32;
    DeviceBuffer<float> weights;
    DeviceBuffer<float> distances;
    DeviceBuffer<double> sums;
    DeviceBuffer<double> weightSums;
    DeviceBuffer<uint64_t> counts;
    DeviceBuffer<double> objective;
    ClusterSumsProblem problem;
};

void expectEqual(const ClusterReference& a, const ClusterReference& b) {
    EXPECT_EQ(a.sums, b.sums);
    EXPECT_EQ(a.weights, b.weights);
    EXPECT_EQ(a.counts, b.counts);
    EXPECT_EQ(a.objective, b.objective);
}

void expectReference(const ClusterCase& c) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const ClusterInput input = makeInput(c);
    SumsRun run(c, input);
    run();
    expectEqual(run.result(), referenceOf(c, input));
}

TEST_F(ClusterSums, SmallRows) {
    for (int64_t n : {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000}) {
        for (int64_t k : {1, 2, 40}) {
            for (bool weighted : {false, true}) {
                expectReference({n, 16, k, LabelOrder::Random, weighted});
            }
        }
    }
}

TEST_F(ClusterSums, SmallDimensions) {
    for (int d : {1,  2,  3,  4,  5,   8,   15,  16,  17,  31,  32,  33, 63,
                  64, 65, 96, 97, 127, 128, 129, 132, 255, 256, 257, 768}) {
        expectReference({300, d, 7, LabelOrder::Skewed});
        expectReference({300, d, 7, LabelOrder::Outside, true});
    }
}

TEST_F(ClusterSums, OrdersOfLabels) {
    for (LabelOrder order : kLabelOrders) {
        for (bool weighted : {false, true}) {
            expectReference({5000, 20, 300, order, weighted});
        }
    }
}

TEST_F(ClusterSums, LongChunks) {
    // Where chunks become longer, and where the objective has more blocks.
    for (int64_t n : {4095, 4096, 4097, 131071, 131072, 131073}) {
        for (LabelOrder order : kLabelOrders) {
            expectReference({n, 5, 1000, order, false});
        }
        expectReference({n, 8, 3, LabelOrder::Sorted, true});
    }
}

TEST_F(ClusterSums, NumbersOfClusters) {
    // Both sides of a pass of the sort.
    for (int64_t k : {254, 255, 256, 257, 65534, 65535, 65536, 100000}) {
        expectReference({20000, 4, k, LabelOrder::Random});
        expectReference({20000, 3, k, LabelOrder::Outside, true});
    }
}

TEST_F(ClusterSums, AnyAlignment) {
    const ClusterCase c{500, 64, 9};
    const ClusterInput input = makeInput(c);
    for (size_t shift : {0, 1, 2, 3, 4}) {
        SumsRun run(c, input, shift);
        run();
        expectEqual(run.result(), referenceOf(c, input));
    }
}

TEST_F(ClusterSums, BothTypesOfLabels) {
    const ClusterCase c{700, 12, 30, LabelOrder::Outside};
    const ClusterInput input = makeInput(c);
    SumsRun run(c, input);
    run.problem.labels = run.labels32.data();
    run.problem.labelType = IdType::Int32;
    run();
    expectEqual(run.result(), referenceOf(c, input));
}

TEST_F(ClusterSums, AccumulatesPieces) {
    const ClusterCase c{3000, 24, 50, LabelOrder::Outside, true};
    const ClusterInput input = makeInput(c);
    SumsRun run(c, input);
    const ClusterSumsProblem whole = run.problem;
    for (int64_t first : {0, 1, 1000, 1001}) {
        const int64_t ends[] = {1, 1000, 1001, c.n};
        for (int64_t end : ends) {
            if (end <= first) {
                continue;
            }
            run.problem.accumulate = first > 0;
            run.problem.n = end - first;
            run.problem.vectors = whole.vectors + first * c.d;
            run.problem.labels =
                    static_cast<const int64_t*>(whole.labels) + first;
            run.problem.weights = whole.weights + first;
            run.problem.distances = whole.distances + first;
            run();
            break;
        }
    }
    expectEqual(run.result(), referenceOf(c, input));
}

TEST_F(ClusterSums, WithoutAnObjective) {
    const ClusterCase c{100, 3, 4};
    const ClusterInput input = makeInput(c);
    SumsRun run(c, input);
    run.problem.distances = nullptr;
    run.problem.outObjective = nullptr;
    run();
    ClusterReference expected = referenceOf(c, input);
    EXPECT_EQ(run.sums.download(), expected.sums);
    EXPECT_EQ(run.counts.download(), expected.counts);
}

TEST_F(ClusterSums, SameBitsEveryRunNearFloat64) {
    ClusterCase c{200000, 33, 77, LabelOrder::Skewed, true};
    c.wholeNumbers = false;
    const ClusterInput input = makeInput(c);
    SumsRun run(c, input);
    run();
    const ClusterReference first = run.result();
    const ClusterReference expected = referenceOf(c, input);
    // Partial sums stay in the hundreds, those of the objective do not.
    for (size_t i = 0; i < first.sums.size(); ++i) {
        ASSERT_NEAR(first.sums[i], expected.sums[i], 4e-9);
    }
    EXPECT_NEAR(first.objective, expected.objective, 1e-7);
    const TestStream stream;
    for (int i = 0; i < 3; ++i) {
        run(stream);
        expectEqual(run.result(), first);
    }
}

TEST_F(ClusterSums, VectorsThatAreNotFiniteStayInTheirCluster) {
    const ClusterCase c{400, 6, 5, LabelOrder::Sorted};
    ClusterInput input = makeInput(c);
    input.vectors[0] = NAN;
    input.vectors[1] = INFINITY;
    SumsRun run(c, input);
    run();
    const auto sums = run.sums.download();
    const auto expected = referenceOf(c, input).sums;
    EXPECT_TRUE(std::isnan(sums[0]));
    EXPECT_EQ(sums[1], INFINITY);
    for (size_t i = 2; i < sums.size(); ++i) {
        EXPECT_EQ(sums[i], expected[i]) << i;
    }
}

TEST_F(ClusterSums, FindsWhatIsNotFinite) {
    for (size_t count : {0, 1, 255, 256, 257, 2000000}) {
        DeviceBuffer<float> values(std::vector<float>(count, 3e38f));
        DeviceBuffer<unsigned> found(1, 0);
        runFindNotFinite(values.data(), count, found.data(), nullptr);
        EXPECT_EQ(found.download()[0], 0u) << count;
        for (float bad : {NAN, INFINITY, -INFINITY}) {
            for (size_t place : {size_t(0), count / 2, count - 1}) {
                if (count == 0) {
                    continue;
                }
                std::vector<float> some(count, -1);
                some[place] = bad;
                values.upload(some);
                found.fillBytes(0);
                runFindNotFinite(values.data(), count, found.data(), nullptr);
                EXPECT_EQ(found.download()[0], 1u) << count << " " << place;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
