#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/KernelTypes.h"

/// A key and an id in one integer, or in two: what heaps and sorts compare.
namespace faiss_bits::cpu {

/// Bits that order as numbers do: -inf .. -0 = +0 .. +inf, NaN last.
inline uint32_t orderedBits(float key) {
    if (std::isnan(key)) {
        return UINT32_MAX;
    }
    const uint32_t bits = std::bit_cast<uint32_t>(key + 0.0f);
    return bits ^ (bits >> 31 ? UINT32_MAX : uint32_t(1) << 31);
}
inline uint64_t orderedBits(double key) {
    if (std::isnan(key)) {
        return UINT64_MAX;
    }
    const uint64_t bits = std::bit_cast<uint64_t>(key + 0.0);
    return bits ^ (bits >> 63 ? UINT64_MAX : uint64_t(1) << 63);
}

inline float keyOfBits(uint32_t bits) {
    if (bits == UINT32_MAX) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return std::bit_cast<float>(
            bits ^ (bits >> 31 ? uint32_t(1) << 31 : UINT32_MAX));
}
inline double keyOfBits(uint64_t bits) {
    if (bits == UINT64_MAX) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    return std::bit_cast<double>(
            bits ^ (bits >> 63 ? uint64_t(1) << 63 : UINT64_MAX));
}

template <>
struct OrderedEntry<float> {
    uint64_t bits;

    OrderedEntry() = default;
    OrderedEntry(float key, int32_t id)
            : bits(uint64_t(orderedBits(key)) << 32 | uint32_t(id)) {}
    float key() const {
        return keyOfBits(uint32_t(bits >> 32));
    }
    int32_t id() const {
        return int32_t(uint32_t(bits));
    }
    bool operator<(const OrderedEntry& other) const {
        return bits < other.bits;
    }

    /// Of the key alone.
    uint32_t order() const {
        return uint32_t(bits >> 32);
    }

    static constexpr int kBytes = 8;
    static constexpr int kFirstKeyByte = 4;
    /// Byte 0 is the least significant of the id.
    int byte(int i) const {
        return int(bits >> (8 * i) & 255);
    }
};

template <>
struct OrderedEntry<double> {
    uint64_t keyBits;
    int64_t id_;

    OrderedEntry() = default;
    OrderedEntry(double key, int64_t id) : keyBits(orderedBits(key)), id_(id) {}
    double key() const {
        return keyOfBits(keyBits);
    }
    int64_t id() const {
        return id_;
    }
    bool operator<(const OrderedEntry& other) const {
        return keyBits != other.keyBits ? keyBits < other.keyBits
                                        : id_ < other.id_;
    }

    uint64_t order() const {
        return keyBits;
    }

    static constexpr int kBytes = 16;
    static constexpr int kFirstKeyByte = 8;
    int byte(int i) const {
        return int(
                (i < 8 ? uint64_t(id_) >> (8 * i) : keyBits >> (8 * (i - 8))) &
                255);
    }
};

/// Of the keys of some entries, as OrderedEntry::order gives them.
template <class T>
struct OrderRange {
    using Order = decltype(OrderedEntry<T>().order());
    Order least = std::numeric_limits<Order>::max(), most = 0;

    void include(Order order) {
        least = order < least ? order : least;
        most = order > most ? order : most;
    }
};

} // namespace faiss_bits::cpu
