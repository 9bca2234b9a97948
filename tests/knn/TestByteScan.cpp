/// Images of 8 bits and their scan, against sums of their bytes on the CPU, and
/// against distances in float64: what passes, what is kept of it, and the
/// bound.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/ByteRows.h"

namespace faiss_bits::test {
namespace {

struct ByteCase {
    int64_t n;
    int64_t q;
    int d;
    bool hard;
    bool products;
    bool filtered = false; // some bits of a word are allowed
};

constexpr uint32_t kAllowedOfWord = 0x49249249;

class ByteScan : public GpuTest {
   protected:
    std::string lack() const override {
        return hasTensorScan(TensorScanKernel::Wgmma, deviceTraits())
                ? ""
                : "no such scan";
    }

    static std::vector<float> makeRows(int64_t n, int d, bool hard, int seed) {
        std::mt19937 random(seed);
        std::vector<float> out(size_t(n) * d);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f - 0.5f;
        }
        const auto scale = [&](int64_t row, float by) {
            for (int c = 0; row < n && c < d; ++c) {
                out[size_t(row) * d + c] *= by;
            }
        };
        if (hard) {
            scale(3, 0.0f);
            scale(5, 64.0f);
            scale(6, 0x1p-12f);
            out[size_t(9) * d + 1] = std::nanf("");
            out[size_t(10) * d + d - 1] = 1000; // all other steps are coarse
            out[size_t(11) * d] = std::numeric_limits<float>::infinity();
        }
        return out;
    }

    /// Residuals are upper bounds, and no more than a little larger.
    static void checkResiduals(const ByteRows& rows, bool areQueries) {
        double most = 0;
        for (int64_t i = 0; i < rows.n; ++i) {
            double squares = 0;
            double length = 0;
            bool finite = true;
            for (int c = 0; c < rows.d; ++c) {
                const double x = rows.values[size_t(i) * rows.d + c];
                const double off = x -
                        rows.bytes[size_t(i) * rows.d + c] *
                                double(rows.steps[areQueries ? i : 0]);
                finite &= std::isfinite(x);
                squares += std::isfinite(x) ? off * off : 0;
                length += std::isfinite(x) ? x * x : 0;
            }
            const double off = std::sqrt(squares);
            if (areQueries) {
                ASSERT_GE(rows.residuals[i], finite ? off : INFINITY) << i;
                if (finite) {
                    ASSERT_LE(
                            rows.residuals[i],
                            1.001 * off + 0x1p-10 * std::sqrt(length) + 1e-12)
                            << i;
                }
            } else if (finite) {
                most = std::max(most, off);
            }
        }
        if (!areQueries) {
            ASSERT_GE(rows.residuals[0], most);
        }
    }

    void expectPassing(const ByteCase& c) {
        SCOPED_TRACE(
                "n=" + std::to_string(c.n) + " q=" + std::to_string(c.q) +
                " d=" + std::to_string(c.d) + (c.hard ? " hard" : "") +
                (c.products ? " products" : "") +
                (c.filtered ? " filtered" : ""));
        const ByteRows x(makeRows(c.n, c.d, c.hard, 1), c.d, false);
        const ByteRows y(makeRows(c.q, c.d, c.hard, 2), c.d, true, &x);
        checkResiduals(x, false);
        checkResiduals(y, true);
        if (HasFatalFailure()) {
            return;
        }
        // 2 <x', q'> - |x|^2 as the scan has it: up to kMostKept dimensions in
        // integers, which are exact here.
        const bool isKept = c.d <= kMostKept;
        std::vector<float> values(size_t(c.q) * c.n);
        std::vector<float> limits(c.q);
        for (int64_t i = 0; i < c.q; ++i) {
            ASSERT_TRUE(!isKept || y.steps[i] == x.steps[0]);
            const float factor = factorOf(x, y, i);
            std::vector<float> keys;
            for (int64_t j = 0; j < c.n; ++j) {
                int sum = 0;
                for (int k = 0; k < c.d; ++k) {
                    sum += x.bytes[size_t(j) * c.d + k] *
                            y.bytes[size_t(i) * c.d + k];
                }
                const double units = unitsOf(x.norms[j], x.steps[0]);
                const float value = isKept
                        ? float(sum - units)
                        : std::fmaf(factor, float(sum), -x.norms[j]);
                values[size_t(i) * c.n + j] = value;
                const float distance = isKept && std::isfinite(x.norms[j])
                        ? value * factor
                        : isKept ? -x.norms[j]
                                 : value;
                const float key = y.norms[i] - distance;
                keys.push_back(key == key ? key : INFINITY);
                expectBound(x, y, i, j, distance);
                if (HasFatalFailure()) {
                    return;
                }
            }
            std::nth_element(keys.begin(), keys.begin() + c.n / 50, keys.end());
            limits[i] = i % 37 == 36 ? INFINITY
                    : i % 41 == 40   ? -INFINITY
                                     : keys[c.n / 50];
        }
        scanAndCompare(c, x, y, values, limits);
    }

   private:
    static float factorOf(const ByteRows& x, const ByteRows& y, int64_t i) {
        return 2.0f * (x.steps[0] * y.steps[i]);
    }

    /// What values have to reach, of a query.
    static double leastOf(
            const ByteCase& c,
            const ByteRows& x,
            const ByteRows& y,
            const std::vector<float>& limits,
            int64_t i) {
        if (c.d <= kMostKept) {
            const double least = std::floor(
                    (double(y.norms[i]) - limits[i]) /
                    (2.0 * x.steps[0] * x.steps[0]));
            // Without a limit all passes.
            return !(least > -HUGE_VAL) ? -HUGE_VAL
                                        : std::clamp(least, -0x1p29, 0x1p29);
        }
        constexpr float kGreatest = std::numeric_limits<float>::max();
        return std::min(y.norms[i] - limits[i], kGreatest);
    }

    static void expectBound(
            const ByteRows& x,
            const ByteRows& y,
            int64_t i,
            int64_t j,
            float value) {
        double distance = 0;
        for (int c = 0; c < x.d; ++c) {
            const double off = double(x.values[size_t(j) * x.d + c]) -
                    double(y.values[size_t(i) * x.d + c]);
            distance += off * off;
        }
        if (!std::isfinite(distance)) {
            return;
        }
        const double norm =
                std::sqrt(double(y.norms[i])) * (1 + (x.d + 16) * 0x1p-24);
        const double error = tensorScanError(
                Metric::L2,
                x.d,
                norm,
                y.residuals[i],
                norm + std::sqrt(distance),
                x.residuals[0],
                x.normError);
        ASSERT_LE(std::fabs(double(y.norms[i]) - value - distance), error)
                << "query " << i << " vector " << j;
    }

    /// The tiles of queries but the second are the scan's.
    static void scanAndCompare(
            const ByteCase& c,
            const ByteRows& x,
            const ByteRows& y,
            const std::vector<float>& values,
            const std::vector<float>& limits) {
        constexpr uint32_t kMost = 7;
        std::vector<uint32_t> costs((c.q + kTile - 1) / kTile, kMost);
        if (costs.size() > 1) {
            costs[1] = kMost + 1;
        }
        const auto capacity = uint32_t(c.n);
        const DeviceBuffer<uint32_t> tileCosts(costs);
        const DeviceBuffer<float> given(limits);
        const DeviceBuffer<uint32_t> counts(c.q, 0);
        const DeviceBuffer<uint32_t> columns(size_t(c.q) * capacity);
        const DeviceBuffer<uint64_t> products(size_t(c.q) * capacity);
        TensorScanProblem p;
        p.numQueries = c.q;
        p.numVectors = c.n;
        p.d = c.d;
        p.queries = y.image;
        p.vectors = x.image;
        p.queryNorms = y.outNorms.data();
        p.passed.limits = given.data();
        p.passed.counts = counts.data();
        p.passed.capacity = capacity;
        p.passed.columns = c.products ? nullptr : columns.data();
        p.passed.products = c.products ? products.data() : nullptr;
        p.tileCosts = tileCosts.data();
        p.mostTileCost = kMost;
        const DeviceBuffer<uint32_t> allowed(
                std::vector<uint32_t>((c.n + 31) / 32, kAllowedOfWord));
        p.allowedBits = c.filtered ? allowed.data() : nullptr;
        runByteScan(p, y.byteImage, x.byteImage, deviceTraits(), nullptr);
        const auto passed = counts.download();
        const auto vectors = columns.download();
        const auto words = products.download();
        for (int64_t i = 0; i < c.q; ++i) {
            const double least = leastOf(c, x, y, limits, i);
            std::set<uint32_t> expected;
            for (int64_t j = 0; i / kTile != 1 && j < c.n; ++j) {
                const bool isAllowed =
                        !c.filtered || kAllowedOfWord >> j % 32 & 1;
                if (isAllowed && !(values[size_t(i) * c.n + j] < least)) {
                    expected.insert(uint32_t(j));
                }
            }
            ASSERT_EQ(passed[i], expected.size()) << "query " << i;
            std::set<uint32_t> found;
            for (uint32_t s = 0; s < passed[i]; ++s) {
                const size_t at = size_t(i) * capacity + s;
                const auto vector =
                        c.products ? uint32_t(words[at]) : vectors[at];
                ASSERT_LT(vector, c.n);
                found.insert(vector);
                if (c.products) {
                    const auto bits = uint32_t(words[at] >> 32);
                    float value;
                    std::memcpy(&value, &bits, sizeof(value));
                    const float units = values[size_t(i) * c.n + vector];
                    const float own = c.d > kMostKept ? units
                            : std::isfinite(x.norms[vector])
                            ? units * factorOf(x, y, i)
                            : -x.norms[vector];
                    ASSERT_TRUE(value == own || (value != value && own != own))
                            << "query " << i << " vector " << vector;
                }
            }
            ASSERT_EQ(found, expected) << "query " << i;
        }
    }
};

TEST_F(ByteScan, SmallWhatPasses) {
    for (bool products : {false, true}) {
        for (const ByteCase& c :
             {ByteCase{2003, 300, 257, false, products},
              ByteCase{2003, 300, 257, true, products},
              ByteCase{2003, 600, 65, false, products},
              ByteCase{2003, 300, 96, true, products},
              ByteCase{3001, 520, 128, false, products},
              ByteCase{1501, 140, 256, false, products},
              ByteCase{1501, 300, 512, true, products},
              ByteCase{1501, 140, 768, false, products},
              ByteCase{700, 20, 1024, true, products},
              ByteCase{513, 270, 513, true, products},
              ByteCase{2003, 300, 130, true, products, true},
              ByteCase{1501, 140, 640, false, products, true}}) {
            expectPassing(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(ByteScan, SmallBytesAreExact) {
    const int d = 300;
    std::mt19937 random(3);
    std::vector<float> values(size_t(1000) * d);
    for (float& one : values) {
        one = float(random() % 256) - 128;
    }
    values[0] = -128;
    const ByteRows x(values, d, false);
    EXPECT_EQ(x.steps[0], 1.0f);
    EXPECT_LT(x.residuals[0], 1e-3f); // of subtracting a center
    for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(x.bytes[i], int(values[i])) << i;
    }
}

} // namespace
} // namespace faiss_bits::test
