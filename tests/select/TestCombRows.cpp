/// One block a row, whose tiles span it as the teeth of a comb.

#include "tests/select/SelectOfFloats.h"
#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

const std::vector<DataType> kTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

/// Both sides of every policy's k.
const std::vector<int> kKs = {2, 10, 32, 33, 64, 65, 128, 129, 256};

class CombRows : public GpuTest {
   protected:
    /// Of a device so small that a few rows are many: 4 have blocks of 256
    /// threads, 5 of 128, and 13, with k up to 64, of 64.
    static SelectCase of(int64_t rows, int64_t cols, DataType type) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.keyType = type;
        c.multiprocessors = 1;
        c.algorithm = SelectAlgorithm::SampleThreshold;
        return c;
    }

    static bool takes(const SelectCase& c, int k) {
        return thresholdPlanOf(c, k).isComb;
    }

    std::string lack() const override {
        return takes(of(5, 9011, DataType::Float32), 10)
                ? ""
                : "needs the shared memory of an H100";
    }
};

TEST_F(CombRows, EveryKindOfValues) {
    for (const Values values : kAllValues) {
        for (const DataType type : kTypes) {
            for (const bool largest : {false, true}) {
                for (const int64_t rows : {4, 5, 13}) {
                    SelectCase c = of(rows, 9011, type);
                    c.values = values;
                    c.largest = largest;
                    ASSERT_TRUE(takes(c, 256));
                    expectSelects(c, kKs);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// An odd stride: rows of all residues of a line in one call, which have heads
/// and tails of every length.
TEST_F(CombRows, EveryResidueInOneCall) {
    for (const DataType type : kTypes) {
        SelectCase c = of(65, 8013, type);
        c.padding = 12;
        c.shift = 1;
        for (const Values values :
             {Values::Random, Values::FewDistinct, Values::Ascending}) {
            c.values = values;
            c.largest = values == Values::Ascending;
            ASSERT_TRUE(takes(c, 10));
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Both sides of whole lines, and of whole tiles of 64 to 256 threads. 16-bit
/// rows end at 576 lines.
TEST_F(CombRows, BothSidesOfEveryEdge) {
    for (const DataType type : kTypes) {
        const int64_t line = 128 / int64_t(sizeOf(type));
        for (const int64_t lines : {256, 257, 288, 320, 512, 576}) {
            for (const int64_t more : {-1, 0, 1}) {
                for (const size_t shift : {0, 1}) {
                    SelectCase c = of(13, lines * line + more, type);
                    c.shift = shift;
                    c.values = Values::FewDistinct;
                    const bool isTooLong =
                            type != DataType::Float32 && c.cols > 576 * line;
                    ASSERT_EQ(takes(c, 10), !isTooLong);
                    expectSelects(c, {10, 60, 100, 200});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// The most columns that go so: limits are lowered several times.
TEST_F(CombRows, LongestRows) {
    for (const DataType type : kTypes) {
        const int64_t most = type == DataType::Float32 ? 65536 : 36864;
        for (const int64_t cols : {most - 28672, most}) {
            for (const Values values : kAllValues) {
                SelectCase c = of(cols == most ? 5 : 13, cols, type);
                c.values = values;
                c.shift = 1;
                c.largest = cols == most;
                ASSERT_TRUE(takes(c, 10));
                expectSelects(c, {2, 64, 128});
                if (HasFailure()) {
                    return;
                }
            }
        }
        EXPECT_FALSE(takes(of(13, most + 1, type), 10));
    }
}

/// The fewest columns that go so: one tile, or two, which blocks of more
/// threads than a row has packs fill in part.
TEST_F(CombRows, ShortestRows) {
    for (const DataType type : kTypes) {
        for (const int64_t cols : {2048, 2049, 2111, 2112, 2303}) {
            for (const int64_t rows : {4, 5, 13}) {
                for (const Values values :
                     {Values::Random, Values::FewDistinct, Values::SomeNan}) {
                    SelectCase c = of(rows, cols, type);
                    c.padding = rows;
                    c.shift = 1;
                    c.values = values;
                    ASSERT_TRUE(takes(c, 256));
                    expectSelects(c, kKs);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(CombRows, Layouts) {
    for (const DataType type : kTypes) {
        for (const size_t shift : {0, 1, 4}) {
            SelectCase c = of(7, 7001, type);
            c.padding = shift * 13;
            c.shift = shift;
            c.outPadding = 3;
            c.givenIds = shift == 1;
            c.idType = shift == 4 ? IdType::Int32 : IdType::Int64;
            c.dropNan = shift == 1;
            c.values = shift == 1 ? Values::SomeNan : Values::Random;
            ASSERT_TRUE(takes(c, 10));
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Rows of 10,000 floats on a device where a few are many.
SelectProblem floatsFor(int k, bool largest) {
    SelectProblem p;
    p.rows = 64;
    p.cols = 10000;
    p.k = k;
    p.largest = largest;
    p.algorithm = SelectAlgorithm::SampleThreshold;
    p.device = deviceTraits();
    p.device.multiprocessors = 1;
    return p;
}

constexpr int64_t kLine = 32; // floats

int64_t tilesOf(const SelectProblem& p) {
    const ThresholdPlan plan = planThreshold(p);
    EXPECT_TRUE(plan.isComb);
    const int64_t linesOfTile = plan.policy.threads / 8 * 4;
    return (p.cols / kLine + linesOfTile - 1) / linesOfTile;
}

/// The worst keys in one line of each piece of a row, or the best, for every
/// one: the first tile's limit lets too many of the others through.
TEST_F(CombRows, OneLineOfEachPieceIsUnlikeTheOthers) {
    for (const int k : {2, 32, 64, 128, 256}) {
        const SelectProblem p = floatsFor(k, false);
        const int64_t tiles = tilesOf(p);
        std::vector<float> keys(size_t(p.rows * p.cols));
        for (int64_t r = 0; r < p.rows; ++r) {
            for (int64_t c = 0; c < p.cols; ++c) {
                const bool isUnlike = c / kLine % tiles == r / 2 % tiles;
                const float far = r % 2 == 0 ? 1e6f : -1e6f;
                keys[r * p.cols + c] =
                        float((c * 7919 + r) % 20011) + (isUnlike ? far : 0);
            }
        }
        expectSelectOfFloats(p, keys);
        if (HasFailure()) {
            return;
        }
    }
}

/// Saw teeth as long as the pieces of which a tile takes a line each, twice and
/// half as long, up and down, from every line on: tiles at even distances would
/// see one place of each tooth, and fill the buffer tile by tile.
TEST_F(CombRows, SawTeethOfTheStep) {
    for (const int k : {2, 20, 60, 120, 250}) {
        for (const bool largest : {false, true}) {
            const SelectProblem p = floatsFor(k, largest);
            const int64_t step = tilesOf(p) * kLine;
            for (const int64_t period : {step / 2, step, 2 * step}) {
                std::vector<float> keys(size_t(p.rows * p.cols));
                for (int64_t r = 0; r < p.rows; ++r) {
                    for (int64_t c = 0; c < p.cols; ++c) {
                        const int64_t part = (c + r / 2 * kLine) % period;
                        keys[r * p.cols + c] =
                                float(r % 2 == 0 ? part : period - part);
                    }
                }
                expectSelectOfFloats(p, keys);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(CombRows, Small) {
    for (const DataType type : kTypes) {
        for (const Values values : {Values::Random, Values::AllEqual}) {
            SelectCase c = of(5, 7003, type);
            c.values = values;
            c.shift = 1;
            ASSERT_TRUE(takes(c, 10));
            expectSelects(c, {10, 200});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
