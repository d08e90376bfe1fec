{
  "target_defaults": {
    "cflags": ["<!@(pkg-config --cflags libsrtp2)"],
    "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wconversion", "-fvisibility=hidden"],
    "libraries": ["<!@(pkg-config --libs libsrtp2)"],
    "conditions": [
      ["'<!(echo ${TRUNKLINE_SANITIZE:-})'!=''", {
        "cflags_cc": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"],
        "ldflags": ["-fsanitize=address,undefined"]
      }]
    ]
  },
  "targets": [
    {
      "target_name": "srtp",
      "sources": ["srtp-session.cc", "udp-socket.cc"],
      # NSS, which is started once (srtp.h), must not be unloaded with the last thread that has the addon.
      "ldflags": ["-Wl,-z,nodelete"],
      "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")"],
      # In a thread that is being ended each call into the addon fails, and nothing can be thrown: without the last one that aborts the process.
      "defines": [
        "NAPI_VERSION=8",
        "NAPI_DISABLE_CPP_EXCEPTIONS",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ]
    },
    {
      "target_name": "socket-holder",
      "type": "executable",
      "sources": ["socket-holder.cc"]
    },
    {
      "target_name": "media-generator",
      "type": "executable",
      "cflags_cc": ["-O3"],
      "sources": [
        "media-generator.cc",
        "generator/audio.cc",
        "generator/call.cc",
        "generator/command.cc",
        "generator/digits.cc",
        "generator/generator.cc",
        "generator/reception.cc",
        "generator/report.cc",
        "generator/rtcp.cc",
        "generator/slot.cc",
        "generator/stamp.cc"
      ]
    }
  ]
}
