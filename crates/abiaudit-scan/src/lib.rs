//! Reads an input (wheel, directory, file) once into a Subject.
