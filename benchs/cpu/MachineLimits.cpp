#include "benchs/cpu/MachineLimits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchs/cpu/MachineLimits.cpp"
#include <hwy/foreach_target.h> // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Multiply-adds that do not wait for each other: four cycles of latency on two
/// pipes ask for eight, and AVX2 has registers for twelve and two operands.
constexpr int kSums = 12;

/// `rounds` times kSums of them; the result depends on all.
template <class T>
double multiplyAdds(int64_t rounds) {
    const hn::ScalableTag<T> tag;
    // Settles at add / (1 - factor): no infinities, no denormals.
    const auto factor = hn::Set(tag, T(0.75));
    const auto add = hn::Set(tag, T(0.25));
    // Apart at the start, or a compiler may take them for one. No array: Arm's
    // vectors, whose size nobody knows, cannot stand in one.
    auto a0 = hn::Set(tag, T(1)), a1 = hn::Set(tag, T(2));
    auto a2 = hn::Set(tag, T(3)), a3 = hn::Set(tag, T(4));
    auto a4 = hn::Set(tag, T(5)), a5 = hn::Set(tag, T(6));
    auto a6 = hn::Set(tag, T(7)), a7 = hn::Set(tag, T(8));
    auto a8 = hn::Set(tag, T(9)), a9 = hn::Set(tag, T(10));
    auto a10 = hn::Set(tag, T(11)), a11 = hn::Set(tag, T(12));
    for (int64_t i = 0; i < rounds; ++i) {
        a0 = hn::MulAdd(a0, factor, add);
        a1 = hn::MulAdd(a1, factor, add);
        a2 = hn::MulAdd(a2, factor, add);
        a3 = hn::MulAdd(a3, factor, add);
        a4 = hn::MulAdd(a4, factor, add);
        a5 = hn::MulAdd(a5, factor, add);
        a6 = hn::MulAdd(a6, factor, add);
        a7 = hn::MulAdd(a7, factor, add);
        a8 = hn::MulAdd(a8, factor, add);
        a9 = hn::MulAdd(a9, factor, add);
        a10 = hn::MulAdd(a10, factor, add);
        a11 = hn::MulAdd(a11, factor, add);
    }
    const auto low = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
    const auto middle = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
    const auto high = hn::Add(hn::Add(a8, a9), hn::Add(a10, a11));
    return double(hn::GetLane(
            hn::SumOfLanes(tag, hn::Add(hn::Add(low, middle), high))));
}

double floatMultiplyAdds(int64_t rounds) {
    return multiplyAdds<float>(rounds);
}

double doubleMultiplyAdds(int64_t rounds) {
    return multiplyAdds<double>(rounds);
}

int lanesOfFloats() {
    return int(hn::Lanes(hn::ScalableTag<float>()));
}

int lanesOfDoubles() {
    return int(hn::Lanes(hn::ScalableTag<double>()));
}

const char* nameOfTarget() {
    return hwy::TargetName(HWY_TARGET);
}

/// Something that depends on all of [data, data + count).
uint64_t readWords(const uint64_t* data, size_t count) {
    const hn::ScalableTag<uint64_t> tag;
    const size_t step = hn::Lanes(tag);
    auto a = hn::Zero(tag), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 4 * step <= count; i += 4 * step) {
        a = hn::Xor(a, hn::LoadU(tag, data + i));
        b = hn::Xor(b, hn::LoadU(tag, data + i + step));
        c = hn::Xor(c, hn::LoadU(tag, data + i + 2 * step));
        d = hn::Xor(d, hn::LoadU(tag, data + i + 3 * step));
    }
    uint64_t rest = hn::GetLane(
            hn::SumOfLanes(tag, hn::Xor(hn::Xor(a, b), hn::Xor(c, d))));
    for (; i < count; ++i) {
        rest ^= data[i];
    }
    return rest;
}

} // namespace faiss_bits::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_bits::bench {

HWY_EXPORT(floatMultiplyAdds);
HWY_EXPORT(doubleMultiplyAdds);
HWY_EXPORT(lanesOfFloats);
HWY_EXPORT(lanesOfDoubles);
HWY_EXPORT(nameOfTarget);
HWY_EXPORT(readWords);

namespace {

constexpr int kSums = 12;
constexpr int kRepeats = 20;

double millisecondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now() - begin)
            .count();
}

} // namespace

template <class T>
double measureFmaPeak(int threads) {
    constexpr bool isFloat = sizeof(T) == 4;
    const int lanes = isFloat ? HWY_DYNAMIC_DISPATCH(lanesOfFloats)()
                              : HWY_DYNAMIC_DISPATCH(lanesOfDoubles)();
    const int64_t rounds = 400'000; // about 2 ms
    std::vector<double> sums(threads);
    double best = 1e300;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        const auto begin = std::chrono::steady_clock::now();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int thread = 0; thread < threads; ++thread) {
            sums[thread] += isFloat
                    ? HWY_DYNAMIC_DISPATCH(floatMultiplyAdds)(rounds)
                    : HWY_DYNAMIC_DISPATCH(doubleMultiplyAdds)(rounds);
        }
        best = std::min(best, millisecondsSince(begin));
    }
    // Sums that nobody reads need not be made.
    const volatile double sink = sums[0];
    (void)sink;
    return 2.0 * kSums * lanes * double(rounds) * threads / best / 1e6;
}

template double measureFmaPeak<float>(int);
template double measureFmaPeak<double>(int);

double timeReading(const void* data, size_t bytes, int threads) {
    const auto* words = static_cast<const uint64_t*>(data);
    const size_t count = bytes / sizeof(uint64_t);
    const size_t part = (count + threads - 1) / threads;
    uint64_t all = 0;
    const auto begin = std::chrono::steady_clock::now();
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(^ : all)
    for (int thread = 0; thread < threads; ++thread) {
        const size_t from = std::min(count, part * thread);
        const size_t to = std::min(count, from + part);
        all ^= HWY_DYNAMIC_DISPATCH(readWords)(words + from, to - from);
    }
    const double ms = millisecondsSince(begin);
    const volatile uint64_t sink = all;
    (void)sink;
    return ms;
}

std::string machineTarget() {
    return HWY_DYNAMIC_DISPATCH(nameOfTarget)();
}

} // namespace faiss_bits::bench
#endif
