{
  "targets": [
    {
      "target_name": "srtp",
      "sources": ["srtp-session.cc"],
      "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": ["NAPI_VERSION=8", "NAPI_DISABLE_CPP_EXCEPTIONS", "NODE_ADDON_API_DISABLE_DEPRECATED"],
      "cflags": ["<!@(pkg-config --cflags libsrtp2)"],
      "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wconversion", "-fvisibility=hidden"],
      "libraries": ["<!@(pkg-config --libs libsrtp2)"],
      "conditions": [
        ["'<!(echo ${TRUNKLINE_SANITIZE:-})'!=''", {
          "cflags_cc": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"],
          "ldflags": ["-fsanitize=address,undefined", "-Wl,-z,nodelete"]
        }]
      ]
    }
  ]
}
