/// Rows that do not begin at multiples of 16 bytes: what streams of them, and
/// what is loaded before and behind it.

#include <algorithm>
#include <random>

#include "kernels/select/RowSpan.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

const std::vector<DataType> kTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

class UnalignedRows : public GpuTest {
   protected:
    static SelectCase caseOf(int64_t rows, int64_t cols, DataType type) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.keyType = type;
        c.algorithm = SelectAlgorithm::SampleThreshold;
        return c;
    }
};

/// An odd stride: rows of all residues in one call.
TEST_F(UnalignedRows, EveryResidueInOneCall) {
    for (const DataType type : kTypes) {
        const int64_t line = kStreamLine / int64_t(sizeOf(type));
        for (const bool largest : {false, true}) {
            // More rows than are held in registers, fewer than are read by
            // combs, and of every residue.
            const int64_t rows = 4 * deviceTraits().multiprocessors - 1;
            ASSERT_GT(rows, line);
            SelectCase c = caseOf(rows, 9001, type);
            c.largest = largest;
            c.padding = 12;
            c.values = largest ? Values::FewDistinct : Values::Random;
            ASSERT_TRUE(thresholdPlanOf(c, 100).fused);
            expectSelects(c, {1, 32, 33, 128, 129, 512, 1024, 2048});
            // Split rows.
            c.rows = 9;
            c.cols = 70001;
            ASSERT_FALSE(thresholdPlanOf(c, 100).fused);
            expectSelects(c, {1, 100, 2048, 5000});
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Both sides of where rows begin to stream, of whole tiles, and of segments,
/// for the tiles of 128 and 256 threads.
TEST_F(UnalignedRows, BothSidesOfEveryEdge) {
    for (const DataType type : kTypes) {
        const int64_t line = kStreamLine / int64_t(sizeOf(type));
        for (const int64_t tile : {2048, 4096}) {
            for (const int64_t tiles : {2, 3, 5, 20}) {
                for (const int64_t more : {-1, 0, 1}) {
                    for (const int64_t head : {int64_t(0), line - 1}) {
                        SelectCase c =
                                caseOf(3, tiles * tile + head + more, type);
                        c.shift = 1;
                        c.padding = (c.cols % 2 == 0) ? 1 : 2;
                        c.values = Values::FewDistinct;
                        // With k beyond 1,024 rows are not held in registers.
                        expectSelects(c, {1, 100, 300, 1100});
                        if (HasFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// The larger blocks, which only long rows have.
TEST_F(UnalignedRows, LongWholeRows) {
    for (const DataType type : kTypes) {
        for (const int64_t cols : {140003, 530001}) {
            SelectCase c = caseOf(4, cols, type);
            c.shift = 3;
            c.padding = 2;
            // So few that a block a row keeps them busy.
            c.multiprocessors = 1;
            for (const Values values :
                 {Values::Random, Values::Ascending, Values::BestTogether}) {
                c.values = values;
                const std::vector<int> ks = {1, 20, 200, 400, 1000, 2048};
                for (const int k : ks) {
                    ASSERT_TRUE(thresholdPlanOf(c, k).fused) << k;
                }
                expectSelects(c, ks);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The best keys before the first whole line, and warps that fill the buffer
/// meanwhile: so many rows that some of their first warps come late.
TEST_F(UnalignedRows, TheHeadHasRoom) {
    for (const DataType type : kTypes) {
        SelectCase c = caseOf(2200, 8213, type);
        c.padding = 4;
        c.values = Values::Ascending;
        ASSERT_TRUE(thresholdPlanOf(c, 1).fused);
        expectSelects(c, {1, 2, 40, 500});
        if (HasFailure()) {
            return;
        }
    }
}

TEST_F(UnalignedRows, EveryKindOfValues) {
    for (const Values values : kAllValues) {
        for (const DataType type : kTypes) {
            for (const bool largest : {false, true}) {
                SelectCase c = caseOf(3, 8231, type);
                c.shift = 1;
                c.values = values;
                c.largest = largest;
                expectSelects(c, {1, 40, 300});
                c.rows = 1;
                c.cols = 50021;
                expectSelects(c, {1, 40, 3000});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// k = 1 by bits, one block a row and several.
class BestOfUnalignedRows : public UnalignedRows {
   protected:
    static void expectBest(
            int64_t rows,
            int64_t cols,
            bool aligned = false,
            const std::vector<Values>& all = kAllValues) {
        for (const DataType type : kTypes) {
            for (const Values values : all) {
                for (const bool largest : {false, true}) {
                    SelectCase c = caseOf(rows, cols, type);
                    c.algorithm = SelectAlgorithm::Bits;
                    c.shift = aligned ? 0 : 1;
                    c.padding = aligned     ? 16 - cols % 16
                            : cols % 2 == 0 ? 1
                                            : 2;
                    c.values = values;
                    c.largest = largest;
                    expectSelects(c, {1});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
};

TEST_F(BestOfUnalignedRows, BothSidesOfEveryEdge) {
    for (const int64_t cols :
         {8191, 8192, 8193, 8223, 8255, 8256, 12288, 70001}) {
        expectBest(5, cols);
    }
    // More rows than blocks at a time.
    expectBest(
            700,
            8200,
            false,
            {Values::Random, Values::FewDistinct, Values::OneFinite});
}

/// Both sides of where rows at multiples of 16 bytes are loaded by packs.
TEST_F(BestOfUnalignedRows, AlignedRows) {
    for (const int64_t cols :
         {1023, 1024, 1025, 4095, 4096, 4097, 12003, 32767, 32768, 32769}) {
        expectBest(3, cols, true);
    }
}

TEST_F(BestOfUnalignedRows, Small) {
    expectBest(3, 8230);
    expectBest(1, 20001);
    expectBest(3, 5000, true);
}

/// The best keys, one at each side of every border between head, tiles and
/// tail, all the others random: each must be found, and no column twice.
class RowBorders : public UnalignedRows {
   protected:
    /// Columns beside the borders of a row that begins at `address`.
    static std::vector<uint32_t> borders(
            uintptr_t address,
            DataType type,
            uint32_t cols,
            uint32_t tile) {
        const RowSpan span(address, sizeOf(type), cols, tile, 0, cols);
        std::vector<uint32_t> found = {0, cols - 1};
        const auto add = [&](uint32_t at) {
            for (const uint32_t c : {at - 1, at}) {
                if (c < cols) {
                    found.push_back(c);
                }
            }
        };
        for (uint32_t t = 0; t <= span.numTiles; ++t) {
            add(span.begin + t * tile);
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    void expectFound(
            DataType type,
            uint32_t cols,
            uint32_t tile,
            size_t shift,
            bool zeros) {
        std::mt19937 random(uint32_t(shift) * 7 + cols);
        std::uniform_real_distribution<float> uniform(1, 2);
        DeviceBuffer<uint8_t> memory(
                cols * sizeOf(type), 0, shift * sizeOf(type));
        const auto address = reinterpret_cast<uintptr_t>(memory.data());
        std::vector<float> keys(cols);
        for (float& key : keys) {
            key = roundTo(type, uniform(random));
        }
        const std::vector<uint32_t> best = borders(address, type, cols, tile);
        for (size_t i = 0; i < best.size(); ++i) {
            keys[best[i]] =
                    zeros ? (i % 2 ? -0.f : 0.f) : roundTo(type, -float(i + 1));
        }
        memory.upload(packAs(type, keys));
        SelectProblem p;
        p.rows = 1;
        p.cols = cols;
        p.k = int(best.size()) + 3;
        p.keyType = type;
        p.algorithm = SelectAlgorithm::SampleThreshold;
        p.device = deviceTraits();
        DeviceBuffer<uint8_t> outKeys(p.k * sizeOf(type), 0xCD);
        DeviceBuffer<int64_t> outIds(p.k, 0xCD);
        DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p), 0xFF);
        p.keys = memory.data();
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        runSelect(p, {scratch.data(), scratch.size()}, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const std::vector<float> found = unpackFrom(type, outKeys.download());
        const std::vector<int64_t> ids = outIds.download();
        EXPECT_TRUE(isTopKOfRow(
                {keys.data(), cols},
                topKOfRow(keys.data(), cols, nullptr, 0, p.k, false),
                found.data(),
                ids.data(),
                p.k,
                0));
    }
};

TEST_F(RowBorders, OfWholeRows) {
    for (const DataType type : kTypes) {
        for (const size_t shift : {1, 3, 7, 31}) {
            for (const uint32_t cols : {4096u, 8230u, 16383u}) {
                expectFound(type, cols, 2048, shift, false);
                expectFound(type, cols, 2048, shift, true);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(RowBorders, OfSplitRows) {
    for (const DataType type : kTypes) {
        for (const size_t shift : {1, 3, 7, 31}) {
            for (const uint32_t cols : {40960u, 40991u, 77777u}) {
                expectFound(type, cols, 4096, shift, false);
                expectFound(type, cols, 4096, shift, true);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(RowBorders, Small) {
    for (const DataType type : kTypes) {
        expectFound(type, 8230, 2048, 3, true);
        expectFound(type, 40991, 4096, 3, false);
    }
}

} // namespace
} // namespace faiss_bits::test
