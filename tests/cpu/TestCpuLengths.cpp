/// What the scan of few queries notes of the vectors that it reads.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Targets.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {

namespace {

/// What a scan of inner products says of |x|^2; its sink takes nothing.
template <class T>
T noted(int64_t target, const cpu::RowView<T>& vectors, int d, idx_t n) {
    const cpu::CommonKernels<T> common = cpu::commonKernelsFor<T>(target);
    const idx_t stride = cpu::roundUp(d, common.lanes);
    cpu::AlignedBuffer<T> query(stride);
    std::fill_n(query.get(), stride, T(0));
    T filter = -std::numeric_limits<T>::infinity(), result = 0;
    cpu::RowState state = cpu::RowState::Below;
    cpu::Sink<T> sink;
    sink.filter = &filter;
    sink.state = &state;
    cpu::ScanJob<T> job;
    job.queries = query.get();
    job.queryStride = stride;
    job.rows = 1;
    job.vectors = vectors;
    job.end = n;
    job.depth = d;
    job.sink = &sink;
    job.largestSquare = &result;
    cpu::metricKernelsFor<T>(cpu::KernelMetric::Product, target)
            .scanDirect(job);
    return result;
}

/// A scan of n rows, one of which is longer than the others: that one at every
/// place. `gap`: components between two rows.
template <class T>
void expectNoted(const std::string& name, int d, idx_t n, int gap) {
    SCOPED_TRACE(
            name + " d=" + std::to_string(d) + " n=" + std::to_string(n) +
            " gap=" + std::to_string(gap));
    const int64_t target = cpu::targetOf(name);
    const idx_t stride = d + gap;
    std::mt19937 random(d);
    std::uniform_real_distribution<T> component(-1, 1);
    // What lies between the rows is not theirs.
    std::vector<T> all(n * stride, T(1e6));
    for (idx_t i = 0; i < n; ++i) {
        for (int j = 0; j < d; ++j) {
            all[i * stride + j] = component(random);
        }
    }
    const cpu::RowView<T> rows = {all.data(), stride, nullptr};
    const auto squareOf = [&](idx_t i) {
        double square = 0;
        for (int j = 0; j < d; ++j) {
            square += double(rows.row(i)[j]) * double(rows.row(i)[j]);
        }
        return square;
    };
    for (idx_t longest = 0; longest < n; ++longest) {
        T* row = all.data() + longest * stride;
        const T kept = row[longest % d];
        row[longest % d] = T(longest % 2 ? 9 : -9);
        double most = 0;
        for (idx_t i = 0; i < n; ++i) {
            most = std::max(most, squareOf(i));
        }
        const double found = noted(target, rows, d, n);
        EXPECT_GE(1.005 * found, most) << longest;
        // Lane by lane, or d times a component.
        const int lanes = cpu::commonKernelsFor<T>(target).lanes;
        EXPECT_LE(found, 1.005 * std::max(lanes, d) * most) << longest;
        row[longest % d] = kept;
    }
}

template <class T>
class CpuLengths : public ::testing::Test {};

using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuLengths, Scalars);

TYPED_TEST(CpuLengths, NoVectorIsLongerThanNoted) {
    for (const std::string& target : cpu::targetNames()) {
        for (const int d : {1,  2,  3,  4,  5,  7,  8,  9,  15,  16,  17,
                            31, 32, 33, 63, 64, 65, 79, 96, 127, 128, 200}) {
            for (const idx_t n : {1, 2, 7, 31, 40}) {
                expectNoted<TypeParam>(target, d, n, 0);
                expectNoted<TypeParam>(target, d, n, 3);
            }
        }
    }
}

/// A vector with NaN is in no result: it may be noted as infinite, but hides no
/// other one. An infinity is noted.
TYPED_TEST(CpuLengths, NanHidesNothing) {
    constexpr TypeParam kNan = std::numeric_limits<TypeParam>::quiet_NaN();
    constexpr TypeParam kInfinity = std::numeric_limits<TypeParam>::infinity();
    const idx_t n = 40;
    for (const std::string& name : cpu::targetNames()) {
        const int64_t target = cpu::targetOf(name);
        for (const int d : {1, 2, 3, 8, 16, 17, 70, 128}) {
            for (idx_t place = 0; place < n; ++place) {
                std::vector<TypeParam> all(n * d, TypeParam(0.5));
                const cpu::RowView<TypeParam> rows = {all.data(), d, nullptr};
                const idx_t other = (place + 1) % n;
                all[other * d + d - 1] = 7;
                all[place * d + place % d] = kNan;
                EXPECT_GE(noted(target, rows, d, n), TypeParam(48.9))
                        << name << " d=" << d << " at " << place;
                all[place * d + place % d] = kInfinity;
                EXPECT_EQ(noted(target, rows, d, n), kInfinity)
                        << name << " d=" << d << " at " << place;
            }
        }
    }
}

} // namespace

} // namespace faiss_bits::test
