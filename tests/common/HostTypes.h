#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/common/Types.h"
#include "tests/common/HalfBits.h"

/// Values as a device type holds them, on the host.
namespace faiss_bits::test {

/// The nearest value that `type` can hold.
inline float roundTo(DataType type, float value) {
    switch (type) {
        case DataType::Float16:
            return float16Value(float16Bits(value));
        case DataType::BFloat16:
            return bfloat16Value(bfloat16Bits(value));
        case DataType::Float32:
            break;
    }
    return value;
}

inline void roundAllTo(DataType type, std::vector<float>& values) {
    for (float& value : values) {
        value = roundTo(type, value);
    }
}

/// The bytes of values as `type`.
inline std::vector<uint8_t> packAs(
        DataType type,
        const std::vector<float>& values) {
    const size_t size = sizeOf(type);
    std::vector<uint8_t> bytes(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
        uint8_t* to = bytes.data() + i * size;
        if (type == DataType::Float16) {
            const uint16_t half = float16Bits(values[i]);
            std::memcpy(to, &half, size);
        } else if (type == DataType::BFloat16) {
            const uint16_t half = bfloat16Bits(values[i]);
            std::memcpy(to, &half, size);
        } else {
            std::memcpy(to, &values[i], size);
        }
    }
    return bytes;
}

inline std::vector<float> unpackFrom(
        DataType type,
        const std::vector<uint8_t>& bytes) {
    const size_t size = sizeOf(type);
    std::vector<float> values(bytes.size() / size);
    for (size_t i = 0; i < values.size(); ++i) {
        const uint8_t* from = bytes.data() + i * size;
        if (type == DataType::Float16) {
            uint16_t half;
            std::memcpy(&half, from, size);
            values[i] = float16Value(half);
        } else if (type == DataType::BFloat16) {
            uint16_t half;
            std::memcpy(&half, from, size);
            values[i] = bfloat16Value(half);
        } else {
            std::memcpy(&values[i], from, size);
        }
    }
    return values;
}

/// The largest finite value of `type`.
inline float maxOf(DataType type) {
    switch (type) {
        case DataType::Float16:
            return 65504.f;
        case DataType::BFloat16:
            return 3.38953139e38f;
        case DataType::Float32:
            break;
    }
    return 3.402823466e38f;
}

inline std::vector<uint8_t> packIds(
        IdType type,
        const std::vector<int64_t>& ids) {
    std::vector<uint8_t> bytes(ids.size() * sizeOf(type));
    for (size_t i = 0; i < ids.size(); ++i) {
        if (type == IdType::Int32) {
            const int32_t id = int32_t(ids[i]);
            std::memcpy(bytes.data() + 4 * i, &id, 4);
        } else {
            std::memcpy(bytes.data() + 8 * i, &ids[i], 8);
        }
    }
    return bytes;
}

inline std::vector<int64_t> unpackIds(
        IdType type,
        const std::vector<uint8_t>& bytes) {
    std::vector<int64_t> ids(bytes.size() / sizeOf(type));
    for (size_t i = 0; i < ids.size(); ++i) {
        if (type == IdType::Int32) {
            int32_t id;
            std::memcpy(&id, bytes.data() + 4 * i, 4);
            ids[i] = id;
        } else {
            std::memcpy(&ids[i], bytes.data() + 8 * i, 8);
        }
    }
    return ids;
}

} // namespace faiss_bits::test
