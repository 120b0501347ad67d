//! Wheels: zip members, file name, tags, dist-info.
