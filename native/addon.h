// What the classes of the addon share.
#pragma once

#include <napi.h>

// The memory and the number of elements of a typed array of this very type; false for anything else.
template <typename Element>
bool GetTypedArray(napi_env env, napi_value value, napi_typedarray_type type, Element** data, size_t* length) {
  napi_typedarray_type actual;
  void* memory = nullptr;
  if (napi_get_typedarray_info(env, value, &actual, length, &memory, nullptr, nullptr) != napi_ok || actual != type) return false;
  *data = static_cast<Element*>(memory);
  return true;
}

void RegisterUdpSocket(Napi::Env env, Napi::Object exports);
