/// Components of vectors between their read and their use.
#pragma once

#include <cstring>

#include "kernels/knn/certified/TileVectors.cuh"

namespace faiss_bits {

/// The bits of a component: what is held of one that is on its way, as a
/// conversion waits for the read.
template <class T>
__device__ __forceinline__ uint32_t heldBits(T component) {
    uint32_t held = 0;
    memcpy(&held, &component, sizeof(T));
    return held;
}

template <class T>
__device__ __forceinline__ float heldNumber(uint32_t held) {
    T component;
    memcpy(&component, &held, sizeof(T));
    return toFloat(component);
}

/// What is held of a component of the vectors of a tile: the number.
template <class Vectors>
struct HeldComponent {
    template <class Column>
    __device__ __forceinline__ static uint32_t near(
            const Column& column,
            uint32_t i) {
        return heldBits(column.near(i));
    }
    template <class Column>
    __device__ __forceinline__ static uint32_t at(
            const Column& column,
            int64_t i) {
        return heldBits(column.at(i));
    }
    __device__ __forceinline__ static float numberOf(uint32_t held) {
        return heldNumber<float>(held);
    }
};

/// Of a matrix: what is stored.
template <class T>
struct HeldComponent<MatrixVectors<T>> {
    using Column = typename MatrixVectors<T>::Column;

    __device__ __forceinline__ static uint32_t near(
            const Column& column,
            uint32_t i) {
        return heldBits(column.x[i * uint32_t(column.rowStride)]);
    }
    __device__ __forceinline__ static uint32_t at(
            const Column& column,
            int64_t i) {
        return heldBits(column.x[i * column.rowStride]);
    }
    __device__ __forceinline__ static float numberOf(uint32_t held) {
        return heldNumber<T>(held);
    }
};

} // namespace faiss_bits
